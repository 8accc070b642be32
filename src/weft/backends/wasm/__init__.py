"""The backend of WebAssembly: models as folders that node and browsers run."""
