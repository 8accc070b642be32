"""The virtual machine: bytecode, its interpreter and what it calls."""
