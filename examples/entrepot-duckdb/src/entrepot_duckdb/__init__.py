"""Vector store of entrepot in DuckDB: ``open_vector_store("duckdb:///articles.db?collection=articles")``."""
# Nothing more here: Python runs this file before plugin.py, which must import no driver.
