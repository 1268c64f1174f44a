"""Run folders in object stores: a local folder that is mirrored to ``s3://``, ``gs://`` or any path of fsspec."""
