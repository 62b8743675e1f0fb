//! The functions and operators of the language, with optional values.

use super::Definition;
use crate::library::costs::CostFormula::*;
use crate::library::costs::Operand::{First, Receiver, Second};
use crate::library::costs::*;
use crate::library::*;

functions! { STANDARD
    "!_", standard::not, UNIT => "logical_not | bool | bool";
    "-_", standard::negate, UNIT => "negate_double | double | double" "negate_int64 | int | int";
    "@in", standard::contains_member, costs(Scaled(Second, 1.0), Size::Unknown, Charge::Members) =>
        "in_list | A; list(A) | bool";
    "@in", standard::contains_member, UNIT => "in_map | A; map(A, B) | bool";
    "@not_strictly_false", standard::not_strictly_false, UNIT => "not_strictly_false | bool | bool";
    "_!=_", standard::unavailable, costs(Comparison, Size::Unknown, Charge::Fixed(1)) => "not_equals | A; A | bool";
    "_%_", standard::modulo, UNIT => "modulo_int64 | int; int | int" "modulo_uint64 | uint; uint | uint";
    "_&&_", standard::unavailable, SHORT_CIRCUIT => "logical_and | bool; bool | bool";
    "_*_", standard::multiply, UNIT =>
        "multiply_double | double; double | double" "multiply_int64 | int; int | int" "multiply_uint64 | uint; uint | uint";
    "_+_", standard::add, CONCATENATION => "add_bytes | bytes; bytes | bytes";
    "_+_", standard::add, UNIT =>
        "add_double | double; double | double" "add_duration_duration | duration; duration | duration"
        "add_duration_timestamp | duration; timestamp | timestamp"
        "add_timestamp_duration | timestamp; duration | timestamp" "add_int64 | int; int | int";
    "_+_", standard::add, costs(Fixed(1), Size::Sum, Charge::Fixed(1)) => "add_list | list(A); list(A) | list(A)";
    "_+_", standard::add, CONCATENATION => "add_string | string; string | string";
    "_+_", standard::add, UNIT => "add_uint64 | uint; uint | uint";
    "_-_", standard::subtract, UNIT =>
        "subtract_double | double; double | double" "subtract_duration_duration | duration; duration | duration"
        "subtract_int64 | int; int | int" "subtract_timestamp_duration | timestamp; duration | timestamp"
        "subtract_timestamp_timestamp | timestamp; timestamp | duration" "subtract_uint64 | uint; uint | uint";
    "_/_", standard::divide, UNIT =>
        "divide_double | double; double | double" "divide_int64 | int; int | int" "divide_uint64 | uint; uint | uint";
    "_==_", standard::unavailable, costs(Equality, Size::Unknown, Charge::Fixed(1)) => "equals | A; A | bool";
    "_?_:_", standard::unavailable, costs(Branches, Size::Either, Charge::Fixed(1)) => "conditional | bool; A; A | A";
    "_[_]", standard::unavailable, UNIT => "index_list | list(A); int | A" "index_map | map(A, B); A | B";
    "_||_", standard::unavailable, SHORT_CIRCUIT => "logical_or | bool; bool | bool";
    "bool", standard::to_bool, UNIT => "bool_to_bool | bool | bool" "string_to_bool | string | bool";
    "bytes", standard::to_bytes, UNIT => "bytes_to_bytes | bytes | bytes";
    "bytes", standard::to_bytes, scaled(First, STRING_FACTOR, Size::Encoded) => "string_to_bytes | string | bytes";
    ".contains", strings::contains, costs(Containment, Size::Unknown, Charge::Contains) =>
        "contains_string | string; string | bool";
    "double", standard::to_double, UNIT =>
        "double_to_double | double | double" "int64_to_double | int | double" "string_to_double | string | double"
        "uint64_to_double | uint | double";
    "duration", standard::to_duration, UNIT =>
        "duration_to_duration | duration | duration" "string_to_duration | string | duration";
    "dyn", standard::identity, UNIT => "to_dyn | A | dyn";
    ".endsWith", strings::ends_with, AFFIX => "ends_with_string | string; string | bool";
    ".getDate", time::date_of_month, UNIT =>
        "timestamp_to_day_of_month_1_based | timestamp | int"
        "timestamp_to_day_of_month_1_based_with_tz | timestamp; string | int";
    ".getDayOfMonth", time::day_of_month, UNIT =>
        "timestamp_to_day_of_month | timestamp | int" "timestamp_to_day_of_month_with_tz | timestamp; string | int";
    ".getDayOfWeek", time::day_of_week, UNIT =>
        "timestamp_to_day_of_week | timestamp | int" "timestamp_to_day_of_week_with_tz | timestamp; string | int";
    ".getDayOfYear", time::day_of_year, UNIT =>
        "timestamp_to_day_of_year | timestamp | int" "timestamp_to_day_of_year_with_tz | timestamp; string | int";
    ".getFullYear", time::full_year, UNIT =>
        "timestamp_to_year | timestamp | int" "timestamp_to_year_with_tz | timestamp; string | int";
    ".getHours", time::hours, UNIT =>
        "timestamp_to_hours | timestamp | int" "timestamp_to_hours_with_tz | timestamp; string | int"
        "duration_to_hours | duration | int";
    ".getMilliseconds", time::milliseconds, UNIT =>
        "timestamp_to_milliseconds | timestamp | int" "timestamp_to_milliseconds_with_tz | timestamp; string | int"
        "duration_to_milliseconds | duration | int";
    ".getMinutes", time::minutes, UNIT =>
        "timestamp_to_minutes | timestamp | int" "timestamp_to_minutes_with_tz | timestamp; string | int"
        "duration_to_minutes | duration | int";
    ".getMonth", time::month, UNIT =>
        "timestamp_to_month | timestamp | int" "timestamp_to_month_with_tz | timestamp; string | int";
    ".getSeconds", time::seconds, UNIT =>
        "timestamp_to_seconds | timestamp | int" "timestamp_to_seconds_tz | timestamp; string | int"
        "duration_to_seconds | duration | int";
    "int", standard::to_int, UNIT =>
        "int64_to_int64 | int | int" "double_to_int64 | double | int" "duration_to_int64 | duration | int"
        "string_to_int64 | string | int" "timestamp_to_int64 | timestamp | int" "uint64_to_int64 | uint | int";
    "matches", strings::matches, matching(First, Second, Size::Unknown) => "matches | string; string | bool";
    ".matches", strings::matches, matching(Receiver, First, Size::Unknown) => "matches_string | string; string | bool";
    "size", standard::size, UNIT =>
        "size_bytes | bytes | int" "size_list | list(A) | int" "size_map | map(A, B) | int" "size_string | string | int";
    ".size", standard::size, UNIT =>
        "bytes_size | bytes | int" "list_size | list(A) | int" "map_size | map(A, B) | int" "string_size | string | int";
    ".startsWith", strings::starts_with, AFFIX => "starts_with_string | string; string | bool";
    "string", standard::to_string, UNIT => "string_to_string | string | string" "bool_to_string | bool | string";
    "string", standard::to_string, scaled(First, STRING_FACTOR, Size::Decoded) => "bytes_to_string | bytes | string";
    "string", standard::to_string, UNIT =>
        "double_to_string | double | string" "duration_to_string | duration | string" "int64_to_string | int | string"
        "timestamp_to_string | timestamp | string" "uint64_to_string | uint | string";
    "timestamp", standard::to_timestamp, UNIT =>
        "timestamp_to_timestamp | timestamp | timestamp" "int64_to_timestamp | int | timestamp"
        "string_to_timestamp | string | timestamp";
    "type", standard::type_of, UNIT => "type | A | type(A)";
    "uint", standard::to_uint, UNIT =>
        "uint64_to_uint64 | uint | uint" "double_to_uint64 | double | uint" "int64_to_uint64 | int | uint"
        "string_to_uint64 | string | uint";
}

/// The orders of values, whose overloads have the same types.
macro_rules! orders {
    ($($name:literal, $call:expr, $id:literal;)*) => { functions! { ORDERS $(
        $name, $call, UNIT => (
            concat!($id, "_bool | bool; bool | bool"), concat!($id, "_int64 | int; int | bool"),
            concat!($id, "_int64_double | int; double | bool"), concat!($id, "_int64_uint64 | int; uint | bool"),
            concat!($id, "_uint64 | uint; uint | bool"), concat!($id, "_uint64_double | uint; double | bool"),
            concat!($id, "_uint64_int64 | uint; int | bool"), concat!($id, "_double | double; double | bool"),
            concat!($id, "_double_int64 | double; int | bool"), concat!($id, "_double_uint64 | double; uint | bool"));
        $name, $call, COMPARISON =>
            (concat!($id, "_string | string; string | bool"), concat!($id, "_bytes | bytes; bytes | bool"));
        $name, $call, UNIT => (
            concat!($id, "_timestamp | timestamp; timestamp | bool"),
            concat!($id, "_duration | duration; duration | bool"));
    )* } };
}
orders! {
    "_<=_", standard::less_equals, "less_equals";
    "_<_", standard::less, "less";
    "_>=_", standard::greater_equals, "greater_equals";
    "_>_", standard::greater, "greater";
}

functions! { OPTIONALS
    "_?._", standard::unavailable, UNIT => "select_optional_field | dyn; string | optional_type(V)";
    "_[?_]", standard::unavailable, UNIT =>
        "list_optindex_optional_int | list(V); int | optional_type(V)"
        "optional_list_optindex_optional_int | optional_type(list(V)); int | optional_type(V)"
        "map_optindex_optional_value | map(K, V); K | optional_type(V)"
        "optional_map_optindex_optional_value | optional_type(map(K, V)); K | optional_type(V)";
    "_[_]", standard::unavailable, UNIT =>
        "optional_list_index_int | optional_type(list(V)); int | optional_type(V)"
        "optional_map_index_value | optional_type(map(K, V)); K | optional_type(V)";
    ".first", standard::list_first, UNIT => "list_first | list(V) | optional_type(V)";
    ".hasValue", standard::optional_has_value, UNIT => "optional_hasValue | optional_type(V) | bool";
    ".last", standard::list_last, UNIT => "list_last | list(V) | optional_type(V)";
    "optional.none", standard::optional_none, UNIT => "optional_none |  | optional_type(V)";
    "optional.of", standard::optional_of, UNIT => "optional_of | V | optional_type(V)";
    "optional.ofNonZeroValue", standard::optional_of_non_zero, UNIT => "optional_ofNonZeroValue | V | optional_type(V)";
    "optional.unwrap", standard::optional_unwrap, UNIT => "optional_unwrap | list(optional_type(V)) | list(V)";
    ".or", standard::optional_or, UNIT => "optional_or_optional | optional_type(V); optional_type(V) | optional_type(V)";
    ".orValue", standard::optional_or_value, UNIT => "optional_orValue_value | optional_type(V); V | V";
    ".unwrapOpt", standard::optional_unwrap, UNIT => "optional_unwrapOpt | list(optional_type(V)) | list(V)";
    ".value", standard::optional_value, UNIT => "optional_value | optional_type(V) | V";
}

functions! { TWO_VARIABLES
    "cel.@mapInsert", standard::map_insert, UNIT =>
        "@mapInsert_map_key_value | map(K, V); K; V | map(K, V)" "@mapInsert_map_map | map(K, V); map(K, V) | map(K, V)";
}

functions! { LEGACY
    "duration", standard::to_duration, UNIT => "int64_to_duration | int | duration";
}
