//! Retry, give up and run now.

use super::{Operator, OperatorError};
use crate::model::{ActionEvent, JobAction, ShownJob};

impl Operator {
    /// Does it to one job exactly as it was seen.
    ///
    /// # Errors
    /// Actions are off, the ledger does not offer it, or the server refused; nothing was done then.
    pub async fn on_job(
        &mut self,
        ledger: &str,
        action: JobAction,
        seen: &ShownJob,
    ) -> Result<ActionEvent, OperatorError> {
        let audit = self.audit_entry();
        let outcome = {
            let (session, ledger) = self.ledger(ledger).await?;
            if let Some(why) = ledger.refuses(action) {
                return Err(OperatorError::NotOffered(why));
            }
            ledger.on_job(session, action, seen, &audit).await
        };
        let attempts = seen.attempts.map_or_else(String::new, |n| format!(", attempts {n}"));
        let what = format!("job {} of type {}{attempts}", seen.id, seen.job_type);
        if let Err(error) = &outcome {
            // Whether it was done is not known when the answer was lost: tried it was.
            self.write_down(ledger, action.word(), &what, &format!("error: {}", error.loss()));
        }
        let moved = self.checked(outcome)?;
        let said = moved
            .as_ref()
            .map_or_else(|| action.done().to_owned(), |found| format!("nothing done: now {found}"));
        self.write_down(ledger, action.word(), &what, &said);
        let event = ActionEvent::OnJob { ledger: ledger.to_owned(), action, id: seen.id.clone(), moved };
        self.say(event.clone());
        Ok(event)
    }
}
