"""Why a constraint or a run fails, where, and what would mend it; every finding is one `engine.errors.Finding`."""
