//! The functions of Kubernetes.

use super::Definition;
use crate::library::costs::CostFormula::*;
use crate::library::costs::Operand::{First, Receiver};
use crate::library::costs::*;
use crate::library::*;

functions! { AUTHORIZATION
    ".fieldSelector", authorization::selector, SELECTOR, always =>
        "authorizer_fieldselector | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.ResourceCheck";
    ".labelSelector", authorization::selector, SELECTOR, always =>
        "authorizer_labelselector | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.ResourceCheck";
    ".allowed", authorization::allowed, UNIT => "decision_allowed | kubernetes.authorization.Decision | bool";
    ".check", authorization::check, costs(Fixed(350_000), Size::Unknown, Charge::Fixed(350_000)), always =>
        "pathcheck_check | kubernetes.authorization.PathCheck; string | kubernetes.authorization.Decision"
        "resourcecheck_check | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.Decision";
    ".error", authorization::error, UNIT => "decision_error | kubernetes.authorization.Decision | string";
    ".errored", authorization::errored, UNIT => "decision_errored | kubernetes.authorization.Decision | bool";
    ".group", authorization::group, UNIT =>
        "authorizer_group | kubernetes.authorization.Authorizer; string | kubernetes.authorization.GroupCheck";
    ".name", authorization::name, UNIT =>
        "resourcecheck_name | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.ResourceCheck";
    ".namespace", authorization::namespace, UNIT =>
        "resourcecheck_namespace | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.ResourceCheck";
    ".path", authorization::path, UNIT =>
        "authorizer_path | kubernetes.authorization.Authorizer; string | kubernetes.authorization.PathCheck";
    ".reason", authorization::reason, UNIT => "decision_reason | kubernetes.authorization.Decision | string";
    ".resource", authorization::resource, UNIT =>
        "groupcheck_resource | kubernetes.authorization.GroupCheck; string | kubernetes.authorization.ResourceCheck";
    ".serviceAccount", authorization::service_account, UNIT =>
        "authorizer_serviceaccount | kubernetes.authorization.Authorizer; string; string | kubernetes.authorization.Authorizer";
    ".subresource", authorization::subresource, UNIT =>
        "resourcecheck_subresource | kubernetes.authorization.ResourceCheck; string | kubernetes.authorization.ResourceCheck";
}

functions! { REGEX
    ".find", strings::find, matching(Receiver, First, Size::UpTo(Receiver)), always =>
        "string_find_string | string; string | string";
    ".findAll", strings::find_all, matching(Receiver, First, Size::UpTo(Receiver)), always =>
        "string_find_all_string | string; string | list(string)"
        "string_find_all_string_int | string; string; int | list(string)";
}

functions! { URLS
    ".getEscapedPath", urls::get_escaped_path, UNIT => "url_get_escaped_path | kubernetes.URL | string";
    ".getHost", urls::get_host, UNIT => "url_get_host | kubernetes.URL | string";
    ".getHostname", urls::get_hostname, UNIT => "url_get_hostname | kubernetes.URL | string";
    ".getPort", urls::get_port, UNIT => "url_get_port | kubernetes.URL | string";
    ".getQuery", urls::get_query, UNIT => "url_get_query | kubernetes.URL | map(string, list(string))";
    ".getScheme", urls::get_scheme, UNIT => "url_get_scheme | kubernetes.URL | string";
    "isURL", urls::is_url, UNIT => "is_url_string | string | bool";
    "url", urls::url, scaled(First, STRING_FACTOR, Size::Same(First)), always => "string_to_url | string | kubernetes.URL";
}

functions! { KUBERNETES_LISTS
    ".indexOf", lists::index_of, TRAVERSAL, always => "list_a_index_of_int | list(A); A | int";
    ".isSorted", lists::is_sorted, TRAVERSAL, always =>
        "list_int_is_sorted_bool | list(int) | bool" "list_uint_is_sorted_bool | list(uint) | bool"
        "list_double_is_sorted_bool | list(double) | bool" "list_bool_is_sorted_bool | list(bool) | bool"
        "list_duration_is_sorted_bool | list(duration) | bool" "list_timestamp_is_sorted_bool | list(timestamp) | bool"
        "list_string_is_sorted_bool | list(string) | bool" "list_bytes_is_sorted_bool | list(bytes) | bool";
    ".lastIndexOf", lists::last_index_of, TRAVERSAL, always => "list_a_last_index_of_int | list(A); A | int";
    ".max", lists::max, TRAVERSAL, always =>
        "list_int_max_int | list(int) | int" "list_uint_max_uint | list(uint) | uint"
        "list_double_max_double | list(double) | double" "list_bool_max_bool | list(bool) | bool"
        "list_duration_max_duration | list(duration) | duration"
        "list_timestamp_max_timestamp | list(timestamp) | timestamp" "list_string_max_string | list(string) | string"
        "list_bytes_max_bytes | list(bytes) | bytes";
    ".min", lists::min, TRAVERSAL, always =>
        "list_int_min_int | list(int) | int" "list_uint_min_uint | list(uint) | uint"
        "list_double_min_double | list(double) | double" "list_bool_min_bool | list(bool) | bool"
        "list_duration_min_duration | list(duration) | duration"
        "list_timestamp_min_timestamp | list(timestamp) | timestamp" "list_string_min_string | list(string) | string"
        "list_bytes_min_bytes | list(bytes) | bytes";
    ".sum", lists::sum_int, TRAVERSAL, always => "list_int_sum_int | list(int) | int";
    ".sum", lists::sum_uint, TRAVERSAL, always => "list_uint_sum_uint | list(uint) | uint";
    ".sum", lists::sum_double, TRAVERSAL, always => "list_double_sum_double | list(double) | double";
    ".sum", lists::sum_duration, TRAVERSAL, always => "list_duration_sum_duration | list(duration) | duration";
}

functions! { INCLUDES
    ".includes", lists::includes, TRAVERSAL, always => "list_includes_dyn_dyn | dyn; dyn | bool";
}

functions! { QUANTITY
    ".add", quantity::add, UNIT =>
        "quantity_add | kubernetes.Quantity; kubernetes.Quantity | kubernetes.Quantity"
        "quantity_add_int | kubernetes.Quantity; int | kubernetes.Quantity";
    ".asApproximateFloat", quantity::as_float, UNIT => "quantity_get_float | kubernetes.Quantity | double";
    ".asInteger", quantity::as_integer, UNIT => "quantity_get_int | kubernetes.Quantity | int";
    ".compareTo", quantity::compare_to, UNIT => "quantity_compare_to | kubernetes.Quantity; kubernetes.Quantity | int";
    ".isGreaterThan", quantity::is_greater_than, UNIT =>
        "quantity_is_greater_than | kubernetes.Quantity; kubernetes.Quantity | bool";
    ".isInteger", quantity::is_integer, UNIT => "quantity_is_integer | kubernetes.Quantity | bool";
    ".isLessThan", quantity::is_less_than, UNIT =>
        "quantity_is_less_than | kubernetes.Quantity; kubernetes.Quantity | bool";
    "isQuantity", quantity::is_quantity, scaled(First, STRING_FACTOR, Size::Unknown), always =>
        "is_quantity_string | string | bool";
    "quantity", quantity::quantity, scaled(First, STRING_FACTOR, Size::Unknown), always =>
        "string_to_quantity | string | kubernetes.Quantity";
    "sign", quantity::sign, UNIT => "quantity_sign | kubernetes.Quantity | int";
    ".sub", quantity::sub, UNIT =>
        "quantity_sub | kubernetes.Quantity; kubernetes.Quantity | kubernetes.Quantity"
        "quantity_sub_int | kubernetes.Quantity; int | kubernetes.Quantity";
}

functions! { NET
    "cidr", net::cidr, scaled(First, STRING_FACTOR, Size::Unknown), always => "string_to_cidr | string | net.CIDR";
    ".containsCIDR", net::contains_cidr, within(Contained::Cidr, Given::Text) => "cidr_contains_cidr_string | net.CIDR; string | bool";
    ".containsCIDR", net::contains_cidr, within(Contained::Cidr, Given::Parsed), always => "cidr_contains_cidr | net.CIDR; net.CIDR | bool";
    ".containsIP", net::contains_ip, within(Contained::Address, Given::Text) => "cidr_contains_ip_string | net.CIDR; string | bool";
    ".containsIP", net::contains_ip, within(Contained::Address, Given::Parsed), always => "cidr_contains_ip_ip | net.CIDR; net.IP | bool";
    ".family", net::family, UNIT => "ip_family | net.IP | int";
    "ip", net::ip, scaled(First, STRING_FACTOR, Size::Unknown), always => "string_to_ip | string | net.IP";
    ".ip", net::ip, costs(Fixed(1), Size::Unknown, Charge::Fixed(1)) => "cidr_ip | net.CIDR | net.IP";
    "ip.isCanonical", net::is_canonical, scaled(First, STRING_TWICE, Size::Unknown), always =>
        "ip_is_canonical | string | bool";
    "isCIDR", net::is_cidr, scaled(First, STRING_FACTOR, Size::Unknown), always => "is_cidr | string | bool";
    ".isGlobalUnicast", net::is_global_unicast, UNIT => "ip_is_global_unicast | net.IP | bool";
    "isIP", net::is_ip, scaled(First, STRING_FACTOR, Size::Unknown), always => "is_ip | string | bool";
    ".isLinkLocalMulticast", net::is_link_local_multicast, UNIT => "ip_is_link_local_multicast | net.IP | bool";
    ".isLinkLocalUnicast", net::is_link_local_unicast, UNIT => "ip_is_link_local_unicast | net.IP | bool";
    ".isLoopback", net::is_loopback, UNIT => "ip_is_loopback | net.IP | bool";
    ".isUnspecified", net::is_unspecified, UNIT => "ip_is_unspecified | net.IP | bool";
    ".masked", net::masked, UNIT => "cidr_masked | net.CIDR | net.CIDR";
    ".prefixLength", net::prefix_length, UNIT => "cidr_prefix_length | net.CIDR | int";
    "string", standard::to_string, UNIT => "ip_to_string | net.IP | string" "cidr_to_string | net.CIDR | string";
}

functions! { FORMAT
    "format.byte", |_| format::constant("byte"), UNIT => "format.byte |  | kubernetes.NamedFormat";
    "format.date", |_| format::constant("date"), UNIT => "format.date |  | kubernetes.NamedFormat";
    "format.datetime", |_| format::constant("datetime"), UNIT => "format.datetime |  | kubernetes.NamedFormat";
    "format.dns1035Label", |_| format::constant("dns1035Label"), UNIT => "format.dns1035Label |  | kubernetes.NamedFormat";
    "format.dns1035LabelPrefix", |_| format::constant("dns1035LabelPrefix"), UNIT =>
        "format.dns1035LabelPrefix |  | kubernetes.NamedFormat";
    "format.dns1123Label", |_| format::constant("dns1123Label"), UNIT => "format.dns1123Label |  | kubernetes.NamedFormat";
    "format.dns1123LabelPrefix", |_| format::constant("dns1123LabelPrefix"), UNIT =>
        "format.dns1123LabelPrefix |  | kubernetes.NamedFormat";
    "format.dns1123Subdomain", |_| format::constant("dns1123Subdomain"), UNIT =>
        "format.dns1123Subdomain |  | kubernetes.NamedFormat";
    "format.dns1123SubdomainPrefix", |_| format::constant("dns1123SubdomainPrefix"), UNIT =>
        "format.dns1123SubdomainPrefix |  | kubernetes.NamedFormat";
    "format.labelValue", |_| format::constant("labelValue"), UNIT => "format.labelValue |  | kubernetes.NamedFormat";
    "format.named", format::named, UNIT => "format-named | string | optional_type(kubernetes.NamedFormat)";
    "format.qualifiedName", |_| format::constant("qualifiedName"), UNIT =>
        "format.qualifiedName |  | kubernetes.NamedFormat";
    "format.uri", |_| format::constant("uri"), UNIT => "format.uri |  | kubernetes.NamedFormat";
    "format.uuid", |_| format::constant("uuid"), UNIT => "format.uuid |  | kubernetes.NamedFormat";
    ".validate", format::validate, VALIDATION, always =>
        "format-validate | kubernetes.NamedFormat; string | optional_type(list(string))";
}

functions! { SEMVER
    ".compareTo", semver::compare_to, UNIT => "semver_compare_to | kubernetes.Semver; kubernetes.Semver | int";
    ".isGreaterThan", semver::is_greater_than, UNIT =>
        "semver_is_greater_than | kubernetes.Semver; kubernetes.Semver | bool";
    ".isLessThan", semver::is_less_than, UNIT => "semver_is_less_than | kubernetes.Semver; kubernetes.Semver | bool";
    "isSemver", semver::is_semver, scaled(First, STRING_FACTOR, Size::Unknown), always =>
        "is_semver_string | string | bool" "is_semver_string_bool | string; bool | bool";
    ".major", semver::major, UNIT => "semver_major | kubernetes.Semver | int";
    ".minor", semver::minor, UNIT => "semver_minor | kubernetes.Semver | int";
    ".patch", semver::patch, UNIT => "semver_patch | kubernetes.Semver | int";
    "semver", semver::semver, scaled(First, STRING_FACTOR, Size::Unknown), always =>
        "string_to_semver | string | kubernetes.Semver" "string_bool_to_semver | string; bool | kubernetes.Semver";
}

functions! { JSON_PATCH
    "jsonpatch.escapeKey", strings::escape_key, scaled(First, STRING_FACTOR, Size::Same(First)), always =>
        "jsonpatch_escapeKey_string | string | string";
}
