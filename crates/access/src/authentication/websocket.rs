//! Tokens among the sub-protocols of a WebSocket.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};
use machinery::Status;

use super::unauthorized;

/// The prefix of the sub-protocol of a token, which follows in base64url without padding.
pub const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Ignores trailing bits after the last byte, as Go does.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The token in the headers `Sec-WebSocket-Protocol`, joined by commas, if there is one. Returns 401 for a token that cannot
/// be decoded, for a second token, and for a token without another protocol for the response.
pub fn token(protocols: &str) -> Result<Option<String>, Status> {
    let all = protocols.split(',').map(str::trim);
    let (tokens, others): (Vec<&str>, Vec<&str>) = all.partition(|protocol| protocol.starts_with(TOKEN_PROTOCOL));
    let encoded = match tokens.as_slice() {
        [] => return Ok(None),
        [token] => token.trim_start_matches(TOKEN_PROTOCOL),
        _ => return Err(unauthorized()),
    };
    let bytes = LENIENT.decode(encoded).map_err(|_| unauthorized())?;
    let token = String::from_utf8(bytes).map_err(|_| unauthorized())?;
    match (token.is_empty(), others.is_empty()) {
        (true, _) => Ok(None),
        (false, true) => Err(unauthorized()),
        (false, false) => Ok(Some(token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_token_is_accepted_in_websocket_protocols() {
        let of = |protocols: &str| token(&protocols.replace('@', TOKEN_PROTOCOL));
        let known = Ok(Some("t1".to_owned()));
        assert_eq!(of("@dDE, v4"), known);
        assert_eq!(of("v4,@dDE"), known);
        assert_eq!(of("@dDF,v4"), known);
        for none in ["v4, v5", "", "@,v4"] {
            assert_eq!(of(none), Ok(None), "{none}");
        }
        for refused in ["@dDE", "@dDE=,v4", "@dDE,@dDE,v4", "@!,v4", "@_w,v4"] {
            assert_eq!(of(refused), Err(unauthorized()), "{refused}");
        }
    }
}
