//! A plain listener, to hear what really goes over the wire.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use tokio_postgres::{AsyncMessage, Client, NoTls};

/// A session that listens on channels and keeps every notification.
pub struct Ears {
    pub client: Client,
    heard: Arc<Mutex<VecDeque<(String, String)>>>,
}

impl Ears {
    /// Listens; committed when this returns.
    pub async fn on(conninfo: &str, channels: &[&str]) -> Self {
        let (client, mut connection) =
            tokio_postgres::connect(conninfo, NoTls).await.expect("a connection");
        let heard = Arc::new(Mutex::new(VecDeque::new()));
        let inbox = heard.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(n) = message {
                    inbox.lock().unwrap().push_back((n.channel().to_owned(), n.payload().to_owned()));
                }
            }
        });
        for channel in channels {
            let quoted = channel.replace('"', "\"\"");
            client.batch_execute(&format!("LISTEN \"{quoted}\"")).await.expect("LISTEN");
        }
        Self { client, heard }
    }

    /// All that was committed before this call and not taken yet. The server hands notifications to an
    /// idle listener before it answers its next statement, so the answer marks the end.
    pub async fn take(&self) -> Vec<(String, String)> {
        for _ in 0..2 {
            self.client.simple_query("SELECT 1").await.expect("an answer");
        }
        self.heard.lock().unwrap().drain(..).collect()
    }
}
