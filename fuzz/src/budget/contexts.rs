//! The contexts in which units may be repeated.

/// An input is `start`, `open` for each level of nesting, the units, `end`, `close` for each level, and `finish`.
pub struct Context {
    pub subject: &'static str,
    pub start: &'static [u8],
    pub open: &'static [u8],
    pub units: &'static [&'static [u8]],
    pub end: &'static [u8],
    pub close: &'static [u8],
    pub finish: &'static [u8],
    /// Wraps the input into a message.
    pub wrap: Option<fn(Vec<u8>) -> Vec<u8>>,
}

const fn context(
    subject: &'static str,
    start: &'static [u8],
    units: &'static [&'static [u8]],
    end: &'static [u8],
) -> Context {
    Context { subject, start, open: b"", units, end, close: b"", finish: b"", wrap: None }
}

impl Context {
    const fn nesting(self, open: &'static [u8], close: &'static [u8], finish: &'static [u8]) -> Context {
        Context { open, close, finish, ..self }
    }

    const fn wrapped(self, wrap: fn(Vec<u8>) -> Vec<u8>) -> Context {
        Context { wrap: Some(wrap), ..self }
    }
}

const MEMBERS: &[&[u8]] = &[
    b"\"k#\":1,",
    b"\"k\":1,",
    b"\"k#\":{\"a\":1,\"a\":2},",
    b"\"k\":{\"a#\":1,\"a#\":2},",
    b"\"k#\":[1,1,1,1],",
    b"\"@\":1,",
    b"\"#@\":{\"a\":\"@\"},",
    b"\"k#\":\"\\u00e4\\ud800\\n\",",
    b"\"k#\":1e308,\"l#\":-0.1e-300,",
    b"\"a\":[[[[[[]]]]]],",
];
const ITEMS: &[&[u8]] =
    &[b"1,", b"\"\",", b"{},", b"[],", b"1.5,", b"\"#\",", b"{\"k\":\"#\"},", b"{\"a\":1,\"a\":1},", b"null,"];

/// Appends a varint.
fn length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    out.push(length as u8);
}

/// The envelope of a ConfigMap.
fn config_map(body: Vec<u8>) -> Vec<u8> {
    let mut out = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".to_vec();
    length(body.len(), &mut out);
    out.extend(body);
    out
}

/// The envelope of a ConfigMap, with the input as the metadata.
fn metadata(body: Vec<u8>) -> Vec<u8> {
    let mut out = b"\x0a".to_vec();
    length(body.len(), &mut out);
    out.extend(body);
    config_map(out)
}

const DEFINITION: &[u8] = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"kites.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"#;
const PROPERTIES: &[&[u8]] = &[
    b"\"p#\":{\"type\":\"string\"},",
    b"\"p#\":{\"type\":\"string\",\"default\":\"@\"},",
    b"\"p#\":{\"type\":\"string\",\"default\":\"a\",\"x-kubernetes-validations\":[{\"rule\":\"self.size() < 9\"}]},",
    b"\"p#\":{\"type\":\"x\"},",
    b"\"p#\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"enum\":[1,2,3]}},\"required\":[\"a\",\"b\"]},",
    b"\"p#\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"],\"items\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"}}}},",
    b"\"p#\":{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]},{\"not\":{}}]},",
    b"\"@\":{},",
    b"\"p#\":{\"unknown\":1,\"type\":5},",
];
const DEFINITION_END: &[u8] = br#""z":{"type":"string"}"#;
const DEFINITION_FINISH: &[u8] = br"}}}}]}}";

const ALTERNATIVES: &[&[u8]] = &[
    b"{\"minLength\":2000000},",
    b"{\"pattern\":\"^x#\",\"description\":\"@\"},",
    b"{\"enum\":[\"#\"]},",
    b"{\"not\":{\"minLength\":1}},",
    b"{\"anyOf\":[{\"minLength\":2000000},{\"maxLength\":1}]},",
];

pub const CONTEXTS: &[Context] = &[
    context("json", b"", MEMBERS, b"").nesting(b"{\"a\":", b"}", b""),
    context("json", b"{\"r\":", &[b"1,"], b"").nesting(b"{\"abcdefgh\":", b"}", b"}"),
    context("json", b"{\"a\":[", ITEMS, b"0]}"),
    context("json", b"{\"r\":{", MEMBERS, b"\"z\":0}}"),
    context("json", b"{\"r\":", &[b"  ", b"\n"], b"{\"a\":1,\"a\":2}").nesting(b"{\"abcdefgh\":", b"}", b"}"),
    context("json", b"{\"r\":{\"@\":{", MEMBERS, b"\"z\":0}}}"),
    context("json", b"\"", &[b"\\u00e4", b"\\ud800", b"\xff", b"\xe2\x80", b"\\\\"], b"\""),
    context("yaml", b"", &[b"k#: v\n", b"k: v\n", b"? k#\n: v\n", b"# c\n", b"k#: \"a\\n\\\n  b\"\n", b"k#: |\n  a\n\n  b\n"], b""),
    context("yaml", b"b: &b {k: v}\nm:\n", &[b"  <<: *b\n", b"  <<: [*b, *b, *b]\n", b"  k#: *b\n"], b""),
    context("yaml", b"", &[b"- a b c\n", b"- [a, {b: c}]\n", b"- !!str 1\n", b"-\n", b"- - - -\n", b"- 'a\n\n  b'\n"], b"\n\n\n\t"),
    context("yaml", b"b: &b \"@\"\nl:\n", &[b"- *b\n", b"- [*b,*b]\n"], b""),
    context("yaml", b"b: &b [a,a,a,a,a,a,a,a]\nl:\n", &[b"- &a# [*b,*b,*b]\n", b"- &b [*b]\n"], b""),
    context("yaml", b"[", &[b"a, ", b"a: b, ", b"[]: , ", b"{}, ", b"\"a\":b, ", b"? a : b, ", b"\n", b"\t"], b"]"),
    context("yaml", b"a: ", &[b"b\n  ", b"b ", b"\n", b" ", b"\xc2\x85  ", b"#"], b""),
    context("yaml", b"", &[b"- ", b"? ", b"[", b"{", b"a: {", b"\n ", b"&a ", b"!!"], b""),
    context("yaml", b"a: \"", &[b"\\u00e4", b"\\\n  ", b" \n\n ", b"\xe2\x80\xa8"], b"\""),
    context("yaml", b"a: >\n", &[b"  b\n", b"  b\n\n", b"\n", b"   c\n"], b""),
    context("yaml", b"%YAML 1.1\n", &[b"%TAG !a#! b\n", b"# c\n"], b"---\na: b\n"),
    context("cbor", b"\xd9\xd9\xf7\xbf", &[b"\x69k#\x01", b"\x41k\x01", b"\x69k#\x9f\x01\x02\xff", b"\x69k#\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"], b"\xff"),
    context("cbor", b"\x9f", &[b"\x01", b"\xa0", b"\x80", b"\x40", b"\x5f\x41a\x41b\xff", b"\xc0\x74\x32026-01-01T00:00:00Z", b"\x9f\xff"], b"\xff"),
    context("cbor", b"", &[b"\x81", b"\x9f", b"\xbf\x41a", b"\x9b\x00\x00\x00\x00\xff\xff\xff\xff", b"\x5b\x00\x00\x00\x00\xff\xff\xff\xff"], b""),
    context("protobuf", b"\x0a\x03\x0a\x01a", &[b"\x12\x0e\x0a\x09k#\x12\x01v", b"\x12\x06\x0a\x01k\x12\x01v", b"\x12\x00", b"\x08\x01"], b"").wrapped(config_map),
    context("protobuf", b"\x0a\x01a", &[b"\x72\x03x/y", b"\x5a\x0e\x0a\x09k#\x12\x01v", b"\x6a\x06\x0a\x01k\x12\x01v", b"\x8a\x01\x02\x0a\x00", b"\x42\x02\x08\x01"], b"").wrapped(metadata),
    context("typed", b"{\"metadata\":{\"name\":\"a\"},", MEMBERS, b"\"z\":0}"),
    context("typed", b"{\"finalizers\":[", ITEMS, b"0]}"),
    context("typed", b"{\"ownerReferences\":[", &[b"{\"uid\":1},", b"{\"x#\":1},", b"1,", b"{\"name\":\"a\",\"name\":\"b\"},"], b"{}]}"),
    context("typed", b"{\"labels\":{", MEMBERS, b"\"z\":0}}"),
    context("typed", DEFINITION, PROPERTIES, DEFINITION_END).nesting(b"\"a\":{\"properties\":{", b"}}", DEFINITION_FINISH),
    context("typed", DEFINITION, PROPERTIES, DEFINITION_END).nesting(b"\"a\":{\"items\":{\"properties\":{", b"}}}", DEFINITION_FINISH),
    context("objects", b"{\"apiVersion\":\"a/v1\",\"kind\":\"K\",", MEMBERS, b"\"z\":0}"),
    context("objects", b"{\"defaulted\":[", ITEMS, b"{}]}"),
    context("objects", b"{\"keyed\":[", ITEMS, b"{\"k\":\"\"}]}"),
    context("objects", b"{\"set\":[", ITEMS, b"\"\"]}"),
    context("objects", b"{\"numbers\":[", ITEMS, b"0]}"),
    context("objects", b"{\"map\":{", MEMBERS, b"\"z\":{}}}"),
    context("objects", b"{\"map\":{\"@\":{", MEMBERS, b"\"z\":{}}}}"),
    context("objects", b"{\"any\":", &[b" "], b"{\"a\":[1,{\"b\":null}]}").nesting(b"{\"abcdefgh\":", b"}", b"}"),
    context("objects", b"{\"embedded\":[", &[b"{},", b"{\"kind\":1},", b"{\"apiVersion\":\"a\",\"kind\":\"b\",\"metadata\":{\"x\":1,\"name\":\"#\"}},"], b"{}]}"),
    context("fields", b"{", &[b"\"f:a#\":{},", b"\"v:#\":{},", b"\"k:{\\\"a\\\":#}\":{\".\":{}},", b"\"i:1#\":{},", b"\"f:a\":{},", b"\"f:@\":{},"], b"\"f:z\":{}")
        .nesting(b"\"f:a\":{", b"}", b"}"),
    context("json-patch", b"[", &[
        b"{\"op\":\"add\",\"path\":\"/list/0\",\"value\":1},",
        b"{\"op\":\"add\",\"path\":\"/data/k#\",\"value\":\"@\"},",
        b"{\"op\":\"copy\",\"from\":\"/list\",\"path\":\"/data/c#\"},",
        b"{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/data/c\"},",
        b"{\"op\":\"move\",\"from\":\"/list/0\",\"path\":\"/list/900\"},",
        b"{\"op\":\"remove\",\"path\":\"/list/1\"},",
        b"{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"b\"},",
        b"{\"op\":\"replace\",\"path\":\"/data\",\"value\":{\"a\":1,\"a\":2}},",
    ], b"{\"op\":\"test\",\"path\":\"\",\"value\":1}]"),
    context("merge-patch", b"{\"data\":{", MEMBERS, b"\"z\":null}}"),
    context("merge-patch", b"{\"data\":", &[b" "], b"{\"z\":null}").nesting(b"{\"abcdefgh\":", b"}", b"}"),
    context("strategic-patch", b"{\"secrets\":[", &[b"{\"name\":\"n1\"},", b"{\"name\":\"#\",\"value\":1},", b"{\"$patch\":\"delete\",\"name\":\"n2\"},", b"1,"], b"{\"name\":\"z\"}]}"),
    context("strategic-patch", b"{\"data\":{", MEMBERS, b"\"z\":null}}"),
    context("strategic-patch", b"{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[", &[b"\"a\",", b"\"#\","], b"\"z\"]}}"),
    context("strategic-patch", b"{\"metadata\":{\"finalizers\":[", &[b"\"a\",", b"\"#\","], b"\"z\"]}}"),
    context("strategic-patch", b"{\"$setElementOrder/list\":[", &[b"{\"name\":\"n1\"},", b"{\"name\":\"#\"},"], b"{\"name\":\"z\"}]}"),
    context("definitions", DEFINITION, PROPERTIES, DEFINITION_END).nesting(b"\"a\":{\"type\":\"object\",\"properties\":{", b"}}", DEFINITION_FINISH),
    context("definitions", DEFINITION, PROPERTIES, DEFINITION_END).nesting(br#""a":{"type":"object","default":{},"x-kubernetes-validations":[{"rule":"self == self"}],"properties":{"#, b"}}", DEFINITION_FINISH),
    context("definitions", br#"{"metadata":{"name":"kites.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite","shortNames":["#, &[b"\"k\",", b"\"k#\",", b"\"K_\","], br#""z"]},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#),
    context("definitions", br#"{"metadata":{"name":"kites.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite"},"versions":["#, &[
        br#"{"name":"v#","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},"#,
        br#"{"name":"v1"},"#,
        br#"{"name":"v#","additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".spec.a"},{"name":"a","type":"x","jsonPath":"["}]},"#,
        br#"{"name":"v#","selectableFields":[{"jsonPath":".spec.a"},{"jsonPath":".spec.a"}]},"#,
    ], br#"{"name":"v0","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#),
    context("definitions", br#"{"metadata":{"name":"kites.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"array","items":{"type":"string"},"enum":["#, &[b"[1],", b"[\"#\"],", b"{\"a\":#},", b"1,"], br#"1]}}}}}]}}"#),
    context("rules", b"[", &[b"1 in [1],", b"[] == [],", b"{1: []} == {},", b"dyn([1])[0] == 1,"], b"true].size() == 1"),
    context("rules", b"[", &[b"1,", b"self.list,", b"{'a': 1},", b"'a' + 'b',", b"1 + 2 * 3,"], b"1].size() == 1"),
    context("rules", b"1", &[b" + 1", b" * (2)", b" - -1"], b" == 1"),
    context("rules", b"true", &[b" && true", b" || self.list.size() > 1", b" ? true : false"], b""),
    context("rules", b"'", &[b"a", b"\\n", b"\\u00e4"], b"'.size() > 1"),
    context("rules", b"", &[b"(", b"!", b"-", b"[", b"self.", b"a ? b : "], b""),
    context("rules", b"", &[b" "], b"true").nesting(b"self.list.exists(x, ", b")", b""),
    context("rules", b"'aab'.matches('", &[b"a", b"(b)", b"[a-z]", b"\\\\pL", b"a|", b"(a*)*", b".{2}", b"\\\\w+?", b"[^\\\\d]", b"(?i:k)"], b"$')"),
    context("rules", b"'aab'.matches('", &[b"(\\\\pL{9})", b"(.?){7}", b"([a-c]|\\\\w){8}"], b"')"),
    context("rules", b"'", &[b"a", b"ab", b"a b"], b"'.matches('^(a|b|ab)*c$') || true"),
    context("rules", b"'", &[b"a", b"ab", b"a b"], b"'.findAll('a+').size() > 1"),
    context("selectors", b"", &[b"a=b,", b"a in (b,c),", b"!a,", b"a#,", b"a notin (#),", b"metadata.name!=b\\,c,"], b"z"),
    context("selectors", b"a in (", &[b"b,", b"#,", b" ", b","], b"z)"),
    context("selectors", b"", &[b".a", b"[0]", b"[*]", b"..a", b"[?(@.a==1)]", b"['a']", b"[0:1]", b"\\."], b""),
    context("selectors", b".list", &[b"[0,0]", b"['name','name']", b"..name", b"[*]", b"[?(@..name)]"], b""),
    context("json-patch", b"[", &[
        br#"{"op":"add","path":"/data/k#","value":{"a":1,"a":2}},"#,
        br#"{"op":"add","path":"/list/0","value":{"a":[1]}},"#,
        br#"{"op":"move","from":"/list/0","path":"/list/1"},"#,
    ], br#"{"op":"remove","path":"/nosuch"}]"#),
    context("json-patch", b"[", &[br#"{"op":"add","path":"/data/k#","value":{"a":1,"a":2}},"#], br#"{"op":"remove","path":"/data/a"}]"#),
    context("conflicts", b"{", &[b"\"f#\":1,", b"\"f#\":{\"a\":1,\"b\":2},"], b"\"z\":1}"),
    context("versions", b"{", &[b"\"f#\":1,", b"\"f#\":[1,1,1,1],"], b"\"z\":0}"),
    context("alternatives", b"{\"anyOf\":[", ALTERNATIVES, b"{\"maxLength\":1}]}"),
    context("alternatives", b"{\"allOf\":[", &[b"{\"minLength\":2#},", b"{\"enum\":[\"#\"]},"], b"{\"maxLength\":1}]}"),
];
