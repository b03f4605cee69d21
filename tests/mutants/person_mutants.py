"""Faults of persons: one who becomes two, records that lose theirs, a delta for records, a name in an error."""

from __future__ import annotations

from mutation import Faults, Mutation

schema, units = Faults("privacy/schema.py", "privacy/unit.py"), Faults("data/units.py")
readers = Faults("data/table.py", "data/parquet.py", "data/arrays.py", "data/folder.py")
records = Faults("data/records.py", "data/parts.py", "runs/in_memory.py", "experiments/continual_plan.py")
source = Faults("vault/source.py")
accounting, words = Faults("privacy/accounting.py"), Faults("report/protected.py", "report/card.py")

UNIT, CODES, READ = "privacy/test_unit.py", "data/test_units.py", "data/test_persons.py"
SAME = f"{CODES}::test_spellings_of_one_id_are_one_person"
EACH = f"{UNIT}::test_the_vault_checks_that_every_record_has_its_person"

PERSONS: tuple[Mutation, ...] = (
    schema(
        "person-units-not-needed",
        "if not is_whole(units) or not 1 <= units <= records:",
        "if units and not 1 <= units <= records:",
        "delta is for nobody's number",
        f"{UNIT}::test_units_is_a_number_of_persons",
    ),
    schema(
        "person-more-units-than-records",
        "not 1 <= units <= records:",
        "not 1 <= units:",
        "persons without records",
        f"{UNIT}::test_units_is_a_number_of_persons",
    ),
    schema(
        "person-is-a-column",
        "if unit in taken or unit == label:",
        "if unit == label:",
        "the id is a number of the record",
        f"{UNIT}::test_who_a_record_is_about_is_no_part_of_it",
    ),
    schema(
        "person-is-the-label",
        "if unit in taken or unit == label:",
        "if unit in taken:",
        "the id is the class",
        f"{UNIT}::test_who_a_record_is_about_is_no_part_of_it",
    ),
    schema(
        "person-delta-by-record",
        "return self.units if self.by_person and self.units is not None else self.records",
        "return self.records",
        "N is not the number of persons",
        f"{UNIT}::test_a_person_is_named_and_counted",
    ),
    schema(
        "person-written-always",
        "if key not in silent}",
        "}",
        "an old reader refuses certificates about records",
        f"{UNIT}::test_schemas_of_kept_certificates_read_and_write_as_they_were",
    ),
    units("person-space", "text = text.strip()\n    if", "text = str(text)\n    if", "p1 and ' p1' are two", SAME),
    units(
        "person-form", 'unicodedata.normalize("NFC", text).strip()', "text.strip()", "two spellings, two persons", SAME
    ),
    units("person-zeros", 'digits = whole[2].lstrip("0") or "0"', "digits = whole[2]", "7 and 007 are two", SAME),
    units("person-floats", "(?:\\.0*)?", "", "7 and 7.0 are two", SAME),
    units(
        "person-missing", 'return "" if len(text) <= 4 and', 'return "" if len(text) < 4 and', "<NA> is somebody", SAME
    ),
    units(
        "person-long-texts",
        'len(text) > LONGEST_SPELT or len(unicodedata.normalize("NFD", text)) > LONGEST_SPELT',
        "len(text) > LONGEST_SPELT",
        "one spelling is short enough, the other is not",
        f"{CODES}::test_a_text_made_to_take_long_takes_no_time",
    ),
    units(
        "person-raises",
        "    except Exception:  # content of a record must not raise",
        "    except KeyError:  # content of a record must not raise",
        "an id raises",
        f"{CODES}::test_no_id_raises",
    ),
    units(
        "person-by-type",
        "key = (type(value), value)",
        "key = value",
        "a code depends on the ids before it",
        f"{CODES}::test_a_code_depends_on_the_ids_of_no_neighbour",
    ),
    readers(
        "person-csv-label",
        "persons.append(unit_codes(columns[schema.unit], str(path)))",
        "persons.append(unit_codes(columns[schema.label], str(path)))",
        "another column says who it is",
        f"{READ}::test_csv_keeps_each_record_with_its_person",
    ),
    readers(
        "person-parquet-text",
        "as_text=name != schema.unit)",
        "as_text=True)",
        "bytes and texts of one id are two persons",
        f"{READ}::test_parquet_types_of_ids",
    ),
    readers(
        "person-npz-length",
        "require_ids(y.shape[0] if y.shape else 0, persons.shape[0], str(path))",
        "len(persons.shape)",
        "the check waits until all is unpacked",
        f"{READ}::test_bad_arrays_of_ids",
        explained="`as_records` finds it too, after the arrays were unpacked within their limit",
    ),
    readers(
        "person-folder-named",
        'Picture(file, person, f"Image {place} of {len(files)} in {folder}, in the order of their names,")',
        "Picture(file, person, str(file))",
        "an error names a person",
        f"{READ}::test_an_image_that_cannot_be_read_is_counted_not_named",
    ),
    readers(
        "person-folder-flat",
        "if schema.by_person and not any(class_folders(sub) for sub in subs):",
        "if schema.by_person and not subs:",
        "all images are one person",
        f"{READ}::test_a_folder_without_persons_is_no_folder_of_one_person",
    ),
    records(
        "person-lost-on-the-way",
        "None if self.units is None else self.units[chosen])",
        "self.units)",
        "records have the persons of others",
        f"{READ}::test_records_that_are_chosen_keep_their_persons",
    ),
    records(
        "person-in-a-part",
        "units=None if whole.units is None else min(whole.units, records),",
        "units=None if whole.units is None else max(1, whole.units * records // whole.records),",
        "a part is taken to have fewer persons than it may have",
        "data/test_parts.py::test_a_part_has_no_more_persons_than_records",
    ),
    records(
        "person-not-given",
        "if schema.by_person and units is None:",
        "if schema.by_person and not schema:",
        "fit goes on without persons",
        "runs/test_estimator.py::test_persons_are_given_exactly_where_the_schema_has_them",
    ),
    records(
        "person-in-stages",
        "        if schema.by_person:\n            raise BadInput(",
        "        if not schema.name:\n            raise BadInput(",
        "stages are taken for parallel though one person is in several",
        "cli/test_person_commands.py::test_stages_are_no_parts_for_persons",
    ),
    source(
        "person-reader-gives-none",
        "if (records.units is not None) != schema.by_person:",
        "if (records.units is not None) > schema.by_person:",
        "answered by record",
        EACH,
    ),
    source(
        "person-reader-length", "units.shape == (count,) and", "units.ndim == 1 and", "a record has no person", EACH
    ),
    accounting(
        "person-delta-words",
        'noun, leak = ("persons", "all records of a person") if by_person else',
        'noun, leak = ("persons", "all records of a person") if not by_person else',
        "the wrong N is named",
        f"{UNIT}::test_delta_is_below_one_over_the_persons",
    ),
    words(
        "person-promised-a-record",
        "return RECORD if certificate.unit == UNIT_RECORD else PERSON",
        "return RECORD",
        "less is promised than was paid for",
        "report/test_protected.py::test_a_person_is_promised_what_a_record_was",
    ),
    words(
        "person-breaks-out",
        "*map(markdown_text, wording.promise(certificate))]",
        "*wording.promise(certificate)]",
        "a unit's name is markup",
        "report/test_protected.py::test_no_name_of_a_unit_breaks_out_of_the_card",
    ),
)
