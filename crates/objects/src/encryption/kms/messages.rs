//! The messages of KMS v2 plugins (`v2/api.proto`), and the stored form of the values that they encrypt. The protocol
//! fixes names and numbers.

use std::collections::BTreeMap;

/// The gRPC paths of the calls.
pub const STATUS: &str = "/v2.KeyManagementService/Status";
pub const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
pub const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";

machinery::messages! {
    StatusRequest {}
    StatusResponse {
        version: String = 1 (string),
        /// `ok`, or why the plugin is not healthy.
        healthz: String = 2 (string),
        key_id: String = 3 (string),
    }
    EncryptRequest { plaintext: Vec<u8> = 1 (bytes = "vec"), uid: String = 2 (string) }
    EncryptResponse {
        ciphertext: Vec<u8> = 1 (bytes = "vec"),
        key_id: String = 2 (string),
        annotations: BTreeMap<String, Vec<u8>> = 3 (btree_map = "string, bytes"),
    }
    DecryptRequest {
        ciphertext: Vec<u8> = 1 (bytes = "vec"),
        uid: String = 2 (string),
        key_id: String = 3 (string),
        annotations: BTreeMap<String, Vec<u8>> = 4 (btree_map = "string, bytes"),
    }
    DecryptResponse { plaintext: Vec<u8> = 1 (bytes = "vec") }
    /// A value in the store, after its prefix.
    EncryptedObject {
        data: Vec<u8> = 1 (bytes = "vec"),
        key_id: String = 2 (string),
        /// The source of the key, encrypted by the plugin.
        source: Vec<u8> = 3 (bytes = "vec"),
        annotations: BTreeMap<String, Vec<u8>> = 4 (btree_map = "string, bytes"),
        source_type: i32 = 5 (int32),
    }
}

/// The source is itself the AES-GCM key.
pub const SOURCE_KEY: i32 = 0;
/// Each value has a key of its own, which HKDF-SHA256 derives from the source and the first bytes of the value.
pub const SOURCE_SEED: i32 = 1;
