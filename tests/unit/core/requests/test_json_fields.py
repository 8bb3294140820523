from __future__ import annotations

from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests.json_fields import MAX_FAULTS, MAX_HINTS, Faults, Fields, RequestField
from tests.unit.core.requests.shown_faults import shown

X = RequestField(name="x", rule=rules.integer(1, 2))
LIST = RequestField(name="list", rule=rules.texts(rules.text()))
COLOR = RequestField(name="color", rule=rules.text())


def read(members: dict[object, object]) -> tuple[Fields, Faults]:
    faults = Faults()
    fields = Fields.of(members, FieldPath(("at",)), (X, LIST, COLOR), faults)
    assert fields is not None
    return fields, faults


def test_items_of_an_array_are_counted_even_if_they_are_invalid() -> None:
    assert read({"list": ["a", 1]})[0].length(LIST) == 2
    assert read({"list": "abc"})[0].length(LIST) == 0


def test_only_the_first_unknown_fields_have_a_suggestion() -> None:
    _, faults = read({f"colors{number}": 1 for number in range(MAX_FAULTS)})
    assert sum("did you mean color?" in fault.message for fault in faults.error().faults) == MAX_HINTS


def test_single_fault_is_the_error_message() -> None:
    faults = Faults()
    faults.add(Fault(FaultCode.TOO_LOW, {"minimum": 1}, FieldPath(("a", "b"))))
    assert str(faults.error()) == "a.b must be at least 1"
    assert faults.error().status == 400


def test_faults_beyond_the_limit_are_only_counted() -> None:
    faults = Faults()
    for number in range(MAX_FAULTS):
        faults.add(Fault(FaultCode.REQUIRED, path=FieldPath((f"f{number}",))))
    assert len(faults.error().faults) == MAX_FAULTS == 50
    for count in (1, 2):
        faults.add(Fault(FaultCode.REQUIRED))
        error = faults.error()
        assert str(error) == f"{MAX_FAULTS + count} faults in the request body"
        assert str(error.faults[MAX_FAULTS - 1].path) == f"f{MAX_FAULTS - 1}"
        assert shown(error.faults[MAX_FAULTS:]) == [("", f"faults that are not listed: {count}")]
