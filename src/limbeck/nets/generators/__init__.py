"""Networks that make records of latents and labels."""
