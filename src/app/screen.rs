//! The screens.

/// The screens, one a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Vital signs, backlog, flow, holders, events.
    Overview,
    /// Jobs by type, and the table.
    Backlog,
    /// Every lease.
    Leases,
    /// Who works.
    Workers,
    /// Other sessions of the server.
    Sessions,
    /// How work is announced and found.
    WakeUps,
    /// The log.
    Events,
}

impl Screen {
    /// In the order of Tab.
    pub const ALL: [Self; 7] = [
        Self::Overview,
        Self::Backlog,
        Self::Leases,
        Self::Workers,
        Self::Sessions,
        Self::WakeUps,
        Self::Events,
    ];

    /// Its name on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Backlog => "Backlog",
            Self::Leases => "Leases",
            Self::Workers => "Workers",
            Self::Sessions => "Sessions",
            Self::WakeUps => "Wake-ups",
            Self::Events => "Events",
        }
    }
}
