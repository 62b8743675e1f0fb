//! The functions of cel-go's extensions.

use super::Definition;
use crate::library::costs::CostFormula::*;
use crate::library::costs::Operand::{First, Receiver, Second};
use crate::library::costs::*;
use crate::library::*;

functions! { STRINGS
    ".charAt", strings::char_at, UNIT => "string_char_at_int | string; int | string";
    ".indexOf", strings::index_of, TRAVERSAL, always =>
        "string_index_of_string | string; string | int" "string_index_of_string_int | string; string; int | int";
    ".join", strings::join, costs(Scaled(Operand::Result, STRING_FACTOR), Size::Joined, Charge::Join), always =>
        "list_join | list(string) | string" "list_join_string | list(string); string | string";
    ".lastIndexOf", strings::last_index_of, TRAVERSAL, always =>
        "string_last_index_of_string | string; string | int" "string_last_index_of_string_int | string; string; int | int";
    ".lowerAscii", strings::lower_ascii, scaled(Receiver, STRING_FACTOR, Size::Same(Receiver)), always =>
        "string_lower_ascii | string | string";
    ".replace", strings::replace, scaled(Receiver, STRING_TWICE, Size::Replaced), always =>
        "string_replace_string_string | string; string; string | string"
        "string_replace_string_string_int | string; string; string; int | string";
    ".split", strings::split, scaled(Receiver, STRING_TWICE, Size::Pieces), always =>
        "string_split_string | string; string | list(string)"
        "string_split_string_int | string; string; int | list(string)";
    ".substring", strings::substring, scaled(Receiver, STRING_FACTOR, Size::Same(Receiver)), always =>
        "string_substring_int | string; int | string" "string_substring_int_int | string; int; int | string";
    ".trim", strings::trim, scaled(Receiver, STRING_FACTOR, Size::Same(Receiver)), always =>
        "string_trim | string | string";
    ".upperAscii", strings::upper_ascii, scaled(Receiver, STRING_FACTOR, Size::Same(Receiver)), always =>
        "string_upper_ascii | string | string";
}

functions! { STRINGS_FORMAT
    ".format", string_format::format, scaled(Receiver, STRING_FACTOR, Size::Unknown) =>
        "string_format | string; list(dyn) | string";
    "strings.quote", strings::quote, scaled(First, STRING_FACTOR, Size::Quoted) => "strings_quote | string | string";
}

functions! { STRINGS_REVERSE
    ".reverse", strings::reverse, UNIT => "string_reverse | string | string";
}

functions! { STRINGS_LATEST
    ".format", string_format::format_latest, scaled(Receiver, STRING_FACTOR, Size::Unknown) =>
        "string_format_latest | string; list(dyn) | string";
    "strings.quote", strings::quote, scaled(First, STRING_FACTOR, Size::Quoted) => "strings_quote | string | string";
}

functions! { SETS
    "sets.contains", lists::sets_contains, costs(Product(First, Second, 1.0), Size::Unknown, Charge::Sets(1)) =>
        "list_sets_contains_list | list(T); list(T) | bool";
    "sets.equivalent", lists::sets_equivalent, costs(Product(First, Second, 2.0), Size::Unknown, Charge::Sets(2)) =>
        "list_sets_equivalent_list | list(T); list(T) | bool";
    "sets.intersects", lists::sets_intersects, costs(Product(First, Second, 1.0), Size::Unknown, Charge::Sets(1)) =>
        "list_sets_intersects_list | list(T); list(T) | bool";
}

functions! { LISTS
    ".@sortByAssociatedKeys", lists::sort_by, costs(NewList(COMPARISONS), Size::Squared(First), Charge::SortBy) =>
        "list_int_sortByAssociatedKeys | list(T); list(int) | list(T)"
        "list_uint_sortByAssociatedKeys | list(T); list(uint) | list(T)"
        "list_double_sortByAssociatedKeys | list(T); list(double) | list(T)"
        "list_bool_sortByAssociatedKeys | list(T); list(bool) | list(T)"
        "list_google.protobuf.Duration_sortByAssociatedKeys | list(T); list(duration) | list(T)"
        "list_google.protobuf.Timestamp_sortByAssociatedKeys | list(T); list(timestamp) | list(T)";
    ".@sortByAssociatedKeys", lists::sort_by, costs(NewList(STRING_COMPARISONS), Size::Squared(First), Charge::SortBy) =>
        "list_string_sortByAssociatedKeys | list(T); list(string) | list(T)"
        "list_bytes_sortByAssociatedKeys | list(T); list(bytes) | list(T)";
    ".distinct", lists::distinct, costs(NewList(COMPARISONS), Size::Squared(Receiver), Charge::Distinct) =>
        "list_distinct | list(T) | list(T)";
    ".flatten", lists::flatten, costs(Flattening, Size::Same(Receiver), Charge::Flatten) =>
        "list_flatten | list(list(T)) | list(T)" "list_flatten_int | list(dyn); int | list(dyn)";
    "lists.range", lists::range, costs(NewList(1.0), Size::Count, Charge::ListResult) => "lists_range | int | list(int)";
    ".reverse", lists::reverse, costs(NewList(1.0), Size::Same(Receiver), Charge::ListResult) =>
        "list_reverse | list(T) | list(T)";
    ".slice", lists::slice, costs(NewList(1.0), Size::Slice, Charge::ListResult) =>
        "list_slice | list(T); int; int | list(T)";
    ".sort", lists::sort, costs(NewList(COMPARISONS), Size::Squared(Receiver), Charge::Sort) =>
        "list_int_sort | list(int) | list(int)" "list_uint_sort | list(uint) | list(uint)"
        "list_double_sort | list(double) | list(double)" "list_bool_sort | list(bool) | list(bool)"
        "list_google.protobuf.Duration_sort | list(duration) | list(duration)"
        "list_google.protobuf.Timestamp_sort | list(timestamp) | list(timestamp)";
    ".sort", lists::sort, costs(NewList(STRING_COMPARISONS), Size::Squared(Receiver), Charge::Sort) =>
        "list_string_sort | list(string) | list(string)" "list_bytes_sort | list(bytes) | list(bytes)";
}

functions! { ENCODERS
    "base64.decode", strings::base64_decode, UNIT => "base64_decode_string | string | bytes";
    "base64.encode", strings::base64_encode, UNIT => "base64_encode_bytes | bytes | string";
}

functions! { MATH
    "math.@max", math::greatest, UNIT =>
        "math_@max_double | double | double" "math_@max_int | int | int" "math_@max_uint | uint | uint"
        "math_@max_double_double | double; double | double" "math_@max_int_int | int; int | int"
        "math_@max_uint_uint | uint; uint | uint" "math_@max_int_uint | int; uint | dyn"
        "math_@max_int_double | int; double | dyn" "math_@max_double_int | double; int | dyn"
        "math_@max_double_uint | double; uint | dyn" "math_@max_uint_int | uint; int | dyn"
        "math_@max_uint_double | uint; double | dyn" "math_@max_list_double | list(double) | double"
        "math_@max_list_int | list(int) | int" "math_@max_list_uint | list(uint) | uint";
    "math.@min", math::least, UNIT =>
        "math_@min_double | double | double" "math_@min_int | int | int" "math_@min_uint | uint | uint"
        "math_@min_double_double | double; double | double" "math_@min_int_int | int; int | int"
        "math_@min_uint_uint | uint; uint | uint" "math_@min_int_uint | int; uint | dyn"
        "math_@min_int_double | int; double | dyn" "math_@min_double_int | double; int | dyn"
        "math_@min_double_uint | double; uint | dyn" "math_@min_uint_int | uint; int | dyn"
        "math_@min_uint_double | uint; double | dyn" "math_@min_list_double | list(double) | double"
        "math_@min_list_int | list(int) | int" "math_@min_list_uint | list(uint) | uint";
    "math.abs", math::abs, UNIT =>
        "math_abs_double | double | double" "math_abs_int | int | int" "math_abs_uint | uint | uint";
    "math.bitAnd", math::bit_and, UNIT =>
        "math_bitAnd_int_int | int; int | int" "math_bitAnd_uint_uint | uint; uint | uint";
    "math.bitNot", math::bit_not, UNIT => "math_bitNot_int_int | int | int" "math_bitNot_uint_uint | uint | uint";
    "math.bitOr", math::bit_or, UNIT => "math_bitOr_int_int | int; int | int" "math_bitOr_uint_uint | uint; uint | uint";
    "math.bitShiftLeft", math::shift_left, UNIT =>
        "math_bitShiftLeft_int_int | int; int | int" "math_bitShiftLeft_uint_int | uint; int | uint";
    "math.bitShiftRight", math::shift_right, UNIT =>
        "math_bitShiftRight_int_int | int; int | int" "math_bitShiftRight_uint_int | uint; int | uint";
    "math.bitXor", math::bit_xor, UNIT =>
        "math_bitXor_int_int | int; int | int" "math_bitXor_uint_uint | uint; uint | uint";
    "math.ceil", math::ceil, UNIT => "math_ceil_double | double | double";
    "math.floor", math::floor, UNIT => "math_floor_double | double | double";
    "math.isFinite", math::is_finite, UNIT => "math_isFinite_double | double | bool";
    "math.isInf", math::is_inf, UNIT => "math_isInf_double | double | bool";
    "math.isNaN", math::is_nan, UNIT => "math_isNaN_double | double | bool";
    "math.round", math::round, UNIT => "math_round_double | double | double";
    "math.sign", math::sign, UNIT =>
        "math_sign_double | double | double" "math_sign_int | int | int" "math_sign_uint | uint | uint";
    "math.sqrt", math::sqrt, UNIT =>
        "math_sqrt_double | double | double" "math_sqrt_int | int | double" "math_sqrt_uint | uint | double";
    "math.trunc", math::trunc, UNIT => "math_trunc_double | double | double";
}

functions! { REGEX_EXTENSION
    "regex.extract", strings::extract, matching(First, Second, Size::Unknown), always =>
        "regex_extract_string_string | string; string | optional_type(string)";
    "regex.extractAll", strings::extract_all, matching(First, Second, Size::Unknown), always =>
        "regex_extractAll_string_string | string; string | list(string)";
    "regex.replace", strings::regex_replace, matching(First, Second, Size::Unknown), always =>
        "regex_replace_string_string_string | string; string; string | string"
        "regex_replace_string_string_string_int | string; string; string; int | string";
}

functions! { PROGRESS
    "address", progress::address, UNIT => "address_string_int | string; int | string";
    "hash", progress::hash, UNIT => "hash_dyn | dyn | string";
    "merge", progress::merge, UNIT => "merge_dyn_dyn | dyn; dyn | dyn";
    "nextTime", progress::next_time, UNIT =>
        "next_time_string_timestamp | string; timestamp | timestamp"
        "next_time_string_timestamp_string | string; timestamp; string | timestamp";
    "scaledDown", progress::scaled_down, UNIT => "scaled_down_dyn_int | dyn; int | int";
    "scaledUp", progress::scaled_up, UNIT => "scaled_up_dyn_int | dyn; int | int";
}
