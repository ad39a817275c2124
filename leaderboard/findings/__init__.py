"""The paper's questions as pure statistics: counts and times in, frozen answers out."""
