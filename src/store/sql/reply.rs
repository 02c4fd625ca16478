//! The answer to something that was asked of a database.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::coordinator::Ticket;
use super::database::Shared;
use super::error::SqlError;
use super::work::Answer;

/// Resolves with the answer. What was asked for is on its way whether this is polled or
/// not; dropping it gives up a statement that has not begun, and nothing else.
#[must_use = "dropping the answer gives up a statement that has not begun"]
pub struct SqlReply<T>(Inner<T>);

enum Inner<T> {
    Asked {
        replied: oneshot::Receiver<Result<Answer, SqlError>>,
        shared: Arc<Shared>,
        ticket: Ticket,
        read: fn(Answer) -> T,
    },
    Refused(SqlError),
    Done,
}

impl<T> SqlReply<T> {
    pub(super) fn new(
        replied: oneshot::Receiver<Result<Answer, SqlError>>,
        shared: Arc<Shared>,
        ticket: Ticket,
        read: fn(Answer) -> T,
    ) -> Self {
        Self(Inner::Asked { replied, shared, ticket, read })
    }

    pub(super) fn refused(error: SqlError) -> Self {
        Self(Inner::Refused(error))
    }
}

impl<T> Future for SqlReply<T> {
    type Output = Result<T, SqlError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Inner::Asked { replied, read, .. } = &mut self.0 {
            let replied = ready!(Pin::new(replied).poll(cx));
            // A sender that is gone without a word went with the database.
            let answer = replied.unwrap_or(Err(SqlError::TransactionClosed)).map(*read);
            self.0 = Inner::Done;
            return Poll::Ready(answer);
        }
        match std::mem::replace(&mut self.0, Inner::Done) {
            Inner::Refused(error) => Poll::Ready(Err(error)),
            Inner::Asked { .. } | Inner::Done => panic!("polled after it was ready"),
        }
    }
}

impl<T> Drop for SqlReply<T> {
    fn drop(&mut self) {
        if let Inner::Asked { shared, ticket, .. } = &self.0 {
            shared.cancel(*ticket);
        }
    }
}
