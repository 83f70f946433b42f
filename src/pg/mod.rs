//! Sessions with PostgreSQL: where to connect, how, and what went wrong.

mod conninfo;
mod error;
mod kept;
mod listen;
mod retry;
mod session;
mod standstill;
mod tls;

pub use conninfo::{Conninfo, ConninfoError, Host, Options, Secret, SslMode};
pub use error::{Error, Fields, loss_of, sqlstate, trouble_of};
pub use kept::{Arg, Line};
pub use listen::{ListenConfig, ListenState, Listener};
pub use retry::Backoff;
pub(crate) use session::closed;
pub use session::{Purpose, Session};
