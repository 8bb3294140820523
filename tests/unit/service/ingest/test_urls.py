"""Game servers of a region may reach the service at URLs of their own."""

from __future__ import annotations

from matchpod.service.ingest.urls import IngestUrls


def test_region_has_its_own_urls_for_logs_and_for_demos() -> None:
    urls = IngestUrls("http://a", {"eu": "http://eu"}, demo_base="http://b", demos_of_regions={"us": "http://us"})
    assert (urls.of("eu").reports, urls.of("eu").demos) == ("http://eu/ingest/reports", "http://b/ingest/demos")
    assert (urls.of("us").reports, urls.of("us").demos) == ("http://a/ingest/reports", "http://us/ingest/demos")


def test_there_is_no_url_for_demos_unless_they_are_uploaded() -> None:
    assert IngestUrls("http://a", demos_of_regions={"us": "http://us"}).of("us").demos is None
