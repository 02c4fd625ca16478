//! Bodies that come and go in pieces, as JavaScript reads and writes them.
//!
//! An exchange that is over is no error here: its client has gone, and whoever reads or
//! writes hears that.

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use super::context::settle_with;
use super::env::{self, number};
use super::error::thrown;
use super::guard::trip;
use crate::error::Result;
use crate::gateway::{Exchange, GatewayError};
use crate::host::embedded::EnvironmentId;

/// Settles `ticket` with the next piece of what the client sends, or with null at its end.
#[napi(catch_unwind)]
pub fn exchange_read(env: &Env, environment: f64, exchange: f64, ticket: f64) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let exchange = find(environment, exchange);
    settle_with(&hub, ticket, async move { Ok(exchange?.read().await?) });
    Ok(())
}

/// Settles `ticket` when there was room for a piece of the answer.
#[napi(catch_unwind)]
pub fn exchange_write(
    env: &Env,
    environment: f64,
    exchange: f64,
    bytes: Uint8Array,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let (bytes, exchange) = (Bytes::copy_from_slice(&bytes), find(environment, exchange));
    settle_with(&hub, ticket, async move {
        exchange?.write(bytes).await?;
        Ok(None)
    });
    Ok(())
}

/// Settles `ticket` when the end of the answer is on its way.
#[napi(catch_unwind)]
pub fn exchange_end(env: &Env, environment: f64, exchange: f64, ticket: f64) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let exchange = find(environment, exchange);
    settle_with(&hub, ticket, async move {
        exchange?.end().await?;
        Ok(None)
    });
    Ok(())
}

/// Settles `ticket` when the answer has ended or its client has gone.
#[napi(catch_unwind)]
pub fn exchange_closed(
    env: &Env,
    environment: f64,
    exchange: f64,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    // Not kept meanwhile, since it is to end with its request.
    let closed = find(environment, exchange).ok().map(|exchange| exchange.gone());
    settle_with(&hub, ticket, async move {
        if let Some(closed) = closed {
            closed.await;
        }
        Ok(None)
    });
    Ok(())
}

/// Breaks the answer off, or with `reads` takes no more of what the client sends.
#[napi(catch_unwind)]
pub fn exchange_cancel(exchange: f64, reads: bool) {
    trip();
    let Some(exchange) = Exchange::find(number(exchange)) else { return };
    if reads {
        exchange.cancel();
    } else {
        exchange.fail();
    }
}

/// Found at once, so that the exchange is known to be this environment's from then on.
fn find(environment: f64, exchange: f64) -> Result<Arc<Exchange>> {
    let environment = EnvironmentId(number(environment));
    let found = Exchange::find_for(number(exchange), environment);
    Ok(found.ok_or(GatewayError::AnswerEnded)?)
}
