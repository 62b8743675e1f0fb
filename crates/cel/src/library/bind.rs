//! Which function implements which overload.

use super::{authorization, format, lists, math, net, quantity, semver, standard, string_format, strings, time, urls};
use crate::eval::Function;

/// The implementation of an overload.
pub(super) fn function(id: &str, name: &str, member: bool) -> Function {
    if let Some(constant) = name.strip_prefix("format.").and_then(format::constant) {
        return constant;
    }
    by_overload(id).or_else(|| by_name(name, member)).unwrap_or(standard::unavailable)
}

fn by_overload(id: &str) -> Option<Function> {
    Some(match id {
        "list_a_index_of_int" => lists::index_of,
        "list_a_last_index_of_int" => lists::last_index_of,
        "string_reverse" => strings::reverse,
        "list_reverse" => lists::reverse,
        "list_int_sum_int" => lists::sum_int,
        "list_uint_sum_uint" => lists::sum_uint,
        "list_double_sum_double" => lists::sum_double,
        "list_duration_sum_duration" => lists::sum_duration,
        "semver_is_less_than" => semver::is_less_than,
        "semver_is_greater_than" => semver::is_greater_than,
        "semver_compare_to" => semver::compare_to,
        "quantity_is_less_than" => quantity::is_less_than,
        "quantity_is_greater_than" => quantity::is_greater_than,
        "quantity_compare_to" => quantity::compare_to,
        "authorizer_fieldselector" | "authorizer_labelselector" => authorization::selector,
        "authorizer_group" => authorization::group,
        "authorizer_path" => authorization::path,
        "authorizer_serviceaccount" => authorization::service_account,
        "decision_allowed" => authorization::allowed,
        "decision_error" => authorization::error,
        "decision_errored" => authorization::errored,
        "decision_reason" => authorization::reason,
        "groupcheck_resource" => authorization::resource,
        "pathcheck_check" | "resourcecheck_check" => authorization::check,
        "resourcecheck_name" => authorization::name,
        "resourcecheck_namespace" => authorization::namespace,
        "resourcecheck_subresource" => authorization::subresource,
        _ => return None,
    })
}

fn by_name(name: &str, member: bool) -> Option<Function> {
    standard(name, member).or_else(|| text(name)).or_else(|| extension(name)).or_else(|| kubernetes(name))
}

fn standard(name: &str, member: bool) -> Option<Function> {
    Some(match name {
        "!_" => standard::not,
        "-_" => standard::negate,
        "@in" => standard::contains_member,
        "@not_strictly_false" => standard::not_strictly_false,
        "_+_" => standard::add,
        "_-_" => standard::subtract,
        "_*_" => standard::multiply,
        "_/_" => standard::divide,
        "_%_" => standard::modulo,
        "_<_" => standard::less,
        "_<=_" => standard::less_equals,
        "_>_" => standard::greater,
        "_>=_" => standard::greater_equals,
        "size" => standard::size,
        "type" => standard::type_of,
        "dyn" => standard::identity,
        "bool" => standard::to_bool,
        "bytes" => standard::to_bytes,
        "double" => standard::to_double,
        "duration" => standard::to_duration,
        "int" => standard::to_int,
        "string" => standard::to_string,
        "timestamp" => standard::to_timestamp,
        "uint" => standard::to_uint,
        "cel.@mapInsert" => standard::map_insert,
        "optional.none" => standard::optional_none,
        "optional.of" => standard::optional_of,
        "optional.ofNonZeroValue" => standard::optional_of_non_zero,
        "optional.unwrap" | "unwrapOpt" => standard::optional_unwrap,
        "hasValue" if member => standard::optional_has_value,
        "value" if member => standard::optional_value,
        "or" if member => standard::optional_or,
        "orValue" if member => standard::optional_or_value,
        "first" => standard::list_first,
        "last" => standard::list_last,
        "getFullYear" => time::full_year,
        "getMonth" => time::month,
        "getDayOfYear" => time::day_of_year,
        "getDayOfMonth" => time::day_of_month,
        "getDate" => time::date_of_month,
        "getDayOfWeek" => time::day_of_week,
        "getHours" => time::hours,
        "getMinutes" => time::minutes,
        "getSeconds" => time::seconds,
        "getMilliseconds" => time::milliseconds,
        _ => return None,
    })
}

fn text(name: &str) -> Option<Function> {
    Some(match name {
        "contains" => strings::contains,
        "startsWith" => strings::starts_with,
        "endsWith" => strings::ends_with,
        "matches" => strings::matches,
        "charAt" => strings::char_at,
        "indexOf" => strings::index_of,
        "lastIndexOf" => strings::last_index_of,
        "lowerAscii" => strings::lower_ascii,
        "upperAscii" => strings::upper_ascii,
        "replace" => strings::replace,
        "split" => strings::split,
        "substring" => strings::substring,
        "trim" => strings::trim,
        "join" => strings::join,
        "strings.quote" => strings::quote,
        "format" => string_format::format,
        "find" => strings::find,
        "findAll" => strings::find_all,
        "regex.extract" => strings::extract,
        "regex.extractAll" => strings::extract_all,
        "regex.replace" => strings::regex_replace,
        "base64.encode" => strings::base64_encode,
        "base64.decode" => strings::base64_decode,
        _ => return None,
    })
}

fn extension(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => lists::is_sorted,
        "min" => lists::min,
        "max" => lists::max,
        "slice" => lists::slice,
        "flatten" => lists::flatten,
        "sort" => lists::sort,
        "@sortByAssociatedKeys" => lists::sort_by,
        "lists.range" => lists::range,
        "distinct" => lists::distinct,
        "sets.contains" => lists::sets_contains,
        "sets.equivalent" => lists::sets_equivalent,
        "sets.intersects" => lists::sets_intersects,
        "math.@max" => math::greatest,
        "math.@min" => math::least,
        "math.ceil" => math::ceil,
        "math.floor" => math::floor,
        "math.round" => math::round,
        "math.trunc" => math::trunc,
        "math.sqrt" => math::sqrt,
        "math.abs" => math::abs,
        "math.sign" => math::sign,
        "math.isFinite" => math::is_finite,
        "math.isInf" => math::is_inf,
        "math.isNaN" => math::is_nan,
        "math.bitAnd" => math::bit_and,
        "math.bitOr" => math::bit_or,
        "math.bitXor" => math::bit_xor,
        "math.bitNot" => math::bit_not,
        "math.bitShiftLeft" => math::shift_left,
        "math.bitShiftRight" => math::shift_right,
        _ => return None,
    })
}

fn kubernetes(name: &str) -> Option<Function> {
    Some(match name {
        "url" => urls::url,
        "isURL" => urls::is_url,
        "getScheme" => urls::get_scheme,
        "getHost" => urls::get_host,
        "getHostname" => urls::get_hostname,
        "getPort" => urls::get_port,
        "getEscapedPath" => urls::get_escaped_path,
        "getQuery" => urls::get_query,
        "quantity" => quantity::quantity,
        "isQuantity" => quantity::is_quantity,
        "isInteger" => quantity::is_integer,
        "asInteger" => quantity::as_integer,
        "asApproximateFloat" => quantity::as_float,
        "sign" => quantity::sign,
        "add" => quantity::add,
        "sub" => quantity::sub,
        "ip" => net::ip,
        "isIP" => net::is_ip,
        "ip.isCanonical" => net::is_canonical,
        "cidr" => net::cidr,
        "isCIDR" => net::is_cidr,
        "family" => net::family,
        "isUnspecified" => net::is_unspecified,
        "isLoopback" => net::is_loopback,
        "isLinkLocalMulticast" => net::is_link_local_multicast,
        "isLinkLocalUnicast" => net::is_link_local_unicast,
        "isGlobalUnicast" => net::is_global_unicast,
        "containsIP" => net::contains_ip,
        "containsCIDR" => net::contains_cidr,
        "masked" => net::masked,
        "prefixLength" => net::prefix_length,
        "format.named" => format::named,
        "validate" => format::validate,
        "semver" => semver::semver,
        "isSemver" => semver::is_semver,
        "major" => semver::major,
        "minor" => semver::minor,
        "patch" => semver::patch,
        _ => return None,
    })
}
