//! The socket of a dashboard: first all of the actor, then what changes, and answers to what
//! the dashboard asks meanwhile.

use std::net::IpAddr;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::link::{Framing, Link, Out, Unanswered};
use super::look::Look;
use super::publish::Publisher;
use super::requests::answer;
use super::{authorize, existing};
use crate::core::config::ClientLimits;
use crate::core::connections::RequestHead;
use crate::error::{Error, ErrorCode, Result};
use crate::gateway::Shared;
use crate::gateway::actor::ELSEWHERE;
use crate::gateway::dialog::Driver;
use crate::gateway::outbox::Outbox;
use crate::gateway::web_socket::WebSocket;
use crate::host::embedded::Address;
use crate::inspector::{ToClient, ToServer, Version};
use crate::protocol::route::Addressee;

/// What a dashboard asks for with its upgrade.
pub(in crate::gateway) struct Dashboard {
    pub(in crate::gateway) actor: Addressee,
    /// The version that it has said.
    pub(in crate::gateway) version: Option<Version>,
    pub(in crate::gateway) token: Option<String>,
    pub(in crate::gateway) head: Arc<RequestHead>,
    pub(in crate::gateway) from: IpAddr,
    pub(in crate::gateway) ray_id: String,
}

impl Dashboard {
    /// Lets it look into the actor, which is woken for it.
    ///
    /// # Errors
    ///
    /// `inspector/unauthorized`, and why there is no actor.
    pub(in crate::gateway) async fn admit(self, shared: &Arc<Shared>) -> Result<Admitted> {
        let row = existing(shared, &self.actor).await?;
        authorize(shared, row.id, self.token.as_deref())?;
        let actor = shared.host.visit(&Address::Id(row.id), ELSEWHERE).await?;
        tracing::debug!(actor_id = %row.id, from = %self.from, "a dashboard looks into an actor");
        let look = Look::new(shared, actor, &self.head);
        Ok(Admitted { look, framing: Framing::of(self.version), ray_id: self.ray_id })
    }
}

/// A dashboard that may look into an actor.
pub(in crate::gateway) struct Admitted {
    look: Look,
    framing: Framing,
    ray_id: String,
}

/// Serves a dashboard until one side ends it.
pub(in crate::gateway) fn serve(
    socket: WebSocket,
    shared: &Shared,
    admitted: Admitted,
    closing: CancellationToken,
) -> BoxFuture<'static, ()> {
    let Admitted { look, framing, ray_id } = admitted;
    let outbox = Arc::<Outbox<Out>>::default();
    let (requests, asked) = unbounded_channel();
    let unanswered = Unanswered::default();
    let link = Link {
        outbox: Arc::clone(&outbox),
        framing,
        requests,
        unanswered: unanswered.clone(),
        ray_id,
        is_open: false,
    };
    let driver = Driver::new(shared, ClientLimits::default(), link, None).run(socket, closing);
    let told = tell(look, outbox, framing, asked, unanswered);
    async move {
        if let Either::Right(((), driver)) = select(Box::pin(driver), Box::pin(told)).await {
            driver.await;
        }
    }
    .boxed()
}

/// Tells a dashboard everything, until the generation is over.
async fn tell(
    look: Look,
    outbox: Arc<Outbox<Out>>,
    framing: Framing,
    asked: UnboundedReceiver<ToServer>,
    unanswered: Unanswered,
) {
    let attached = look.actor.attach();
    // Before the greeting is made, so that what changes meanwhile is told behind it.
    let glance = look.actor.glance();
    let init = match look.init().await {
        Ok(init) => init,
        Err(_) if look.was_closed() => return outbox.push(Out::Gone),
        Err(error) => {
            tracing::error!(%error, "a dashboard cannot be told of an actor");
            let code = ErrorCode::new("inspector", "init_error");
            return outbox.push(Out::End(Error::new(code, "the actor cannot be shown")));
        }
    };
    let patched = Arc::<Notify>::default();
    let ways = (look.clone(), Arc::clone(&outbox), framing);
    let publisher = Publisher::new(ways, attached, Arc::clone(&patched), &glance, &init);
    outbox.push(Out::Frame(framing.write(&ToClient::Init(Box::new(init)))));
    let answers = answer_all(&look, &outbox, framing, asked, &unanswered, &patched);
    select(Box::pin(publisher.run()), Box::pin(answers)).await;
    outbox.push(Out::Gone);
}

/// Answers what a dashboard asks, each as soon as it can be.
async fn answer_all(
    look: &Look,
    outbox: &Outbox<Out>,
    framing: Framing,
    mut asked: UnboundedReceiver<ToServer>,
    unanswered: &Unanswered,
    patched: &Notify,
) {
    let mut open = FuturesUnordered::new();
    loop {
        let answered = tokio::select! {
            biased;
            request = asked.recv() => {
                // Gone with the socket, which ends this.
                let Some(request) = request else { return };
                open.push(answer(look, request));
                continue;
            }
            Some(answered) = open.next() => answered,
        };
        unanswered.answered();
        match answered {
            Some(message) => outbox.push(Out::Frame(framing.write(&message))),
            None => {
                patched.notify_one();
                // The socket looks again whether it reads on.
                outbox.nudge();
            }
        }
    }
}
