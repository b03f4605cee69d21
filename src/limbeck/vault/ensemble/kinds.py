"""The closed lists of the ensemble: the vault accepts these teachers and these questions and no other."""

from __future__ import annotations

from limbeck.vault.ensemble.critics import Critic
from limbeck.vault.ensemble.discriminators import Discriminator
from limbeck.vault.ensemble.feature_discriminators import FeatureTeacher
from limbeck.vault.ensemble.teachers import Question, Teacher
from limbeck.vault.ensemble.votes import BeliefVote, BinVote, CriticGradient, LevelVote, SignVote, SketchVote

TEACHERS: dict[str, type[Teacher]] = {
    "critic": Critic,
    "discriminator": Discriminator,
    "feature_discriminator": FeatureTeacher,
}
QUESTIONS: dict[str, type[Question]] = {
    "sign_vote": SignVote,
    "sketch_vote": SketchVote,
    "level_vote": LevelVote,
    "belief_vote": BeliefVote,
    "bin_vote": BinVote,
    "critic_gradient": CriticGradient,
}
