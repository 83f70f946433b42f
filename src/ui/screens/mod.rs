//! One file per screen.

pub(super) mod backlog;
pub(super) mod events;
pub(super) mod jobs;
pub(super) mod leases;
pub(super) mod overview;
pub(super) mod sessions;
pub(super) mod wakeups;
pub(super) mod workers;
