"""Signatures follow Standard Webhooks, and only valid ones are accepted."""

from __future__ import annotations

import pytest

from matchpod.service.access.webhook_signature import attempt_headers, mask_headers, new_secret, sign, verify

# The example from the tests of the Standard Webhooks reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP = 1_614_265_330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

OTHER = new_secret(b"o" * 32)
HEADERS = {"webhook-id": MESSAGE_ID, "webhook-timestamp": str(TIMESTAMP), "webhook-signature": SIGNATURE}


def test_published_example_is_valid_with_header_names_in_any_case() -> None:
    assert verify([SECRET], HEADERS, BODY, now_s=TIMESTAMP)
    assert verify([SECRET], {name.title(): value for name, value in HEADERS.items()}, BODY, now_s=TIMESTAMP)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_other"},
        {"webhook-id": ""},
        {"webhook-id": "msg.1"},
        {"webhook-timestamp": str(TIMESTAMP + 1)},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": f" {TIMESTAMP}"},
        {"webhook-timestamp": "१६१४२६५३३०"},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-signature": ""},
        {"webhook-signature": SIGNATURE.removeprefix("v1,")},
        {"webhook-signature": SIGNATURE.replace("v1,", "v2,")},
        {"webhook-signature": SIGNATURE[:-1]},
        {"webhook-signature": "v1,\udce9"},
    ],
)
def test_changed_header_is_invalid(changed: dict[str, str]) -> None:
    assert not verify([SECRET], HEADERS | changed, BODY, now_s=TIMESTAMP)


@pytest.mark.parametrize("name", list(HEADERS))
def test_missing_header_is_invalid(name: str) -> None:
    assert not verify([SECRET], {key: value for key, value in HEADERS.items() if key != name}, BODY, now_s=TIMESTAMP)


def test_changed_body_or_another_secret_is_invalid() -> None:
    assert not verify([SECRET], HEADERS, BODY + b" ", now_s=TIMESTAMP)
    assert not verify([OTHER], HEADERS, BODY, now_s=TIMESTAMP)
    assert not verify([], HEADERS, BODY, now_s=TIMESTAMP)


@pytest.mark.parametrize(("offset_s", "is_valid"), [(300, True), (-300, True), (301, False), (-301, False)])
def test_timestamp_must_be_within_five_minutes(offset_s: int, is_valid: bool) -> None:
    assert verify([SECRET], HEADERS, BODY, now_s=TIMESTAMP + offset_s) is is_valid


def test_one_matching_signature_and_secret_is_enough() -> None:
    several = HEADERS | {"webhook-signature": f"v1,AAAA {sign(OTHER, MESSAGE_ID, TIMESTAMP, BODY)}  {SIGNATURE}"}
    assert verify([SECRET], several, BODY, now_s=TIMESTAMP)
    assert verify([OTHER, SECRET], HEADERS, BODY, now_s=TIMESTAMP)


def test_new_secret_can_sign() -> None:
    secret = new_secret(bytes(32))
    assert secret == "whsec_" + "A" * 43 + "="
    assert sign(secret, "m", 0, b"").startswith("v1,")


@pytest.mark.parametrize("size", [0, 23, 65])
def test_secret_of_another_size_is_rejected(size: int) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes"):
        new_secret(bytes(size))


@pytest.mark.parametrize("secret", ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%", "whsec_é"])
def test_invalid_secret_is_rejected_without_showing_it(secret: str) -> None:
    with pytest.raises(ValueError, match="a webhook secret") as caught:
        sign(secret, MESSAGE_ID, TIMESTAMP, BODY)
    assert secret in ("", "whsec_") or secret not in str(caught.value)


@pytest.mark.parametrize("message_id", ["", "a.b", "a b", "a\n", "é"])
def test_ambiguous_id_is_rejected(message_id: str) -> None:
    with pytest.raises(ValueError, match="the id of a callback"):
        sign(SECRET, message_id, TIMESTAMP, BODY)


def test_attempt_has_all_headers() -> None:
    headers = attempt_headers(
        [SECRET], MESSAGE_ID, BODY, timestamp_s=TIMESTAMP, attempt=2, version="1.2.3", authorization="Bearer t"
    )
    assert headers == {
        "Content-Type": "application/json",
        "User-Agent": "Matchpod/1.2.3",
        "webhook-id": MESSAGE_ID,
        "webhook-timestamp": str(TIMESTAMP),
        "webhook-signature": SIGNATURE,
        "X-Matchpod-Attempt": "2",
        "Authorization": "Bearer t",
    }


def test_attempt_without_token_has_no_authorization_and_is_signed_with_every_secret() -> None:
    headers = attempt_headers([OTHER, SECRET], "cb_1", BODY, timestamp_s=7, attempt=1, version="1")
    assert "Authorization" not in headers
    assert len(headers["webhook-signature"].split(" ")) == 2
    assert verify([SECRET], headers, BODY, now_s=7)
    assert verify([OTHER], headers, BODY, now_s=7)


def test_masked_headers_show_neither_signature_nor_authorization() -> None:
    headers = attempt_headers(
        [SECRET, OTHER], MESSAGE_ID, BODY, timestamp_s=TIMESTAMP, attempt=2, version="1.2", authorization="Bearer t"
    )
    masked = mask_headers(headers)
    assert masked == {**headers, "webhook-signature": "v1,***", "Authorization": "***"}
    assert not verify([SECRET], masked, BODY, now_s=TIMESTAMP)
