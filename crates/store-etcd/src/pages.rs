//! Ranges of keys, which are read page by page: etcd returns a whole range otherwise.

use bytes::Bytes;

use crate::client::Client;
use crate::failure::Failure;
use crate::messages as m;

/// The pages of a range that are left.
pub struct Pages {
    request: m::RangeRequest,
    is_over: bool,
}

impl Pages {
    /// The pages of the range of `request`, whose limit is the size of a page.
    pub fn of(request: m::RangeRequest) -> Pages {
        Pages { request, is_over: false }
    }

    /// The next page, or `None` after the last one. Only the first page may be empty.
    pub async fn next(&mut self, client: &Client) -> Result<Option<m::RangeResponse>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        let page: m::RangeResponse = client.read(m::RANGE, &self.request).await?;
        match page.kvs.last().filter(|_| page.more) {
            Some(last) => self.request.key = after(&last.key),
            None => self.is_over = true,
        }
        Ok(Some(page))
    }
}

/// The first key that can follow another one.
pub fn after(key: &Bytes) -> Bytes {
    [&key[..], b"\0"].concat().into()
}
