"""Store demos in a folder or in a bucket of an S3 service."""
