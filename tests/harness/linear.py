"""A linearizability checker for histories of client operations and watches; it needs no server.

Each key is a register that holds a value under a version. There must be an order of the operations that respects real time
and explains every response (Herlihy and Wing; the search is that of Wing and Gong, which remembers visited states).
Every write has a value of its own, so that a value identifies its write. A request without a response may have taken effect
once at any later time, or never.

Watches and lists are compared with one history of changes: the events of all watches together (the properties of etcd's
robustness tests). The message of `Violation` names the contradiction.
"""

from dataclasses import dataclass, field, replace

NEVER = float("inf")


class Violation(Exception):
    """The history contradicts linearizability."""


@dataclass
class Operation:
    """An operation of a client on a key. `outcome` is the response that the client received, or None if it received none.

    create: "ok" | "exists"; update, delete: "ok" | "conflict" | "missing"; get: "ok" | "missing".
    """

    what: str
    key: str
    start: float
    end: float = NEVER
    value: str | None = None
    expected: int | None = None
    outcome: str | None = None
    version: int | None = None


@dataclass
class Event:
    """A change delivered by a watch; for a deletion, `value` is the last value."""

    kind: str
    key: str
    value: str
    version: int


@dataclass
class Stream:
    """A watch and its resumptions: events and bookmarks (versions) in order, after the version `after`."""

    after: int
    items: list = field(default_factory=list)


@dataclass
class Listing:
    """A list: values and versions by key. If `stale`, it may be of any version, otherwise it must be of the newest."""

    version: int
    items: dict
    start: float
    end: float
    stale: bool = False


def check(operations, streams, listings, final):
    """Raises Violation if the history is not linearizable. `final` is the last list, whose version a stream has reached."""
    changes = history(streams)
    operations = [with_outcome(operation, changes) for operation in operations]
    check_streams(streams, changes)
    check_listings([*listings, final], changes, operations)
    check_writes(operations, changes, final)
    for key in sorted({operation.key for operation in operations}):
        check_register([operation for operation in operations if operation.key == key])


def with_outcome(operation, changes):
    """An operation with its outcome: a write without a response has succeeded if a watch delivered it."""
    if operation.outcome is None and operation.what in ("create", "update"):
        for version, event in changes.items():
            if event.value == operation.value and event.kind != "DELETED":
                return replace(operation, outcome="ok", version=version)
    return operation


def history(streams):
    """The change of each version; all streams must agree on it."""
    changes = {}
    for stream in streams:
        for event in stream.items:
            if isinstance(event, Event):
                other = changes.setdefault(event.version, event)
                if other != event:
                    raise Violation(f"two watches differ at {event.version}: {other} and {event}")
    values = {}
    for version, event in sorted(changes.items()):
        if event.kind != "DELETED" and values.setdefault(event.value, version) != version:
            raise Violation(f"{event.value} was written at {values[event.value]} and at {version}")
    state = {}
    for _, event in sorted(changes.items()):
        current = state.get(event.key)
        wrong = (event.kind == "ADDED") == (current is not None) or event.kind == "DELETED" and current != event.value
        if wrong:
            raise Violation(f"{event} cannot follow {current}")
        state[event.key] = None if event.kind == "DELETED" else event.value
    return changes


def check_streams(streams, changes):
    """Checks that each stream is in order, without gaps and duplicates, and that no event is older than a bookmark before it."""
    for stream in streams:
        at, seen = stream.after, set()
        for item in stream.items:
            version = item.version if isinstance(item, Event) else item
            if version < at or isinstance(item, Event) and version == at:
                raise Violation(f"{item} was delivered after {at}")
            at = version
            if isinstance(item, Event):
                seen.add(version)
        missed = sorted(version for version in changes if stream.after < version <= at and version not in seen)
        if missed:
            raise Violation(f"a watch from {stream.after} to {at} has missed {changes[missed[0]]}")


def states(changes, versions):
    """The state at each of the given versions: value and version by key."""
    found, state = {}, {}
    waiting = iter(sorted(changes.items()))
    change = next(waiting, None)
    for version in sorted(set(versions)):
        while change is not None and change[0] <= version:
            event = change[1]
            if event.kind == "DELETED":
                state.pop(event.key, None)
            else:
                state[event.key] = (event.value, event.version)
            change = next(waiting, None)
        found[version] = dict(state)
    return found


def check_listings(listings, changes, operations):
    """Checks that each list is the state of its version, and includes all writes that were acknowledged before it."""
    at = states(changes, [listing.version for listing in listings])
    acknowledged = [(o.start, o.end, o.version) for o in operations if o.version is not None and o.what in ("create", "update")]
    for listing in listings:
        if listing.items != at[listing.version]:
            raise Violation(f"a list at {listing.version} was {listing.items} and not {at[listing.version]}")
        older = [version for _, end, version in acknowledged if end < listing.start and version > listing.version]
        if older and not listing.stale:
            raise Violation(f"a list at {listing.version} started after {max(older)} had been acknowledged")
        newer = [version for start, _, version in acknowledged if start > listing.end and version <= listing.version]
        if newer:
            raise Violation(f"version {min(newer)} was assigned after a list at {listing.version}")


def check_writes(operations, changes, final):
    """Checks that every acknowledged write is a change, that no rejected one is, and that versions increase with time."""
    of_value = {event.value: version for version, event in changes.items() if event.kind != "DELETED"}
    for operation in operations:
        if operation.what not in ("create", "update"):
            continue
        found = of_value.get(operation.value)
        if operation.outcome == "ok" and found != operation.version:
            raise Violation(f"the write {operation} is at {found} in the watches")
        if operation.outcome not in ("ok", None) and found is not None:
            raise Violation(f"the rejected write {operation} has taken effect at {found}")
    if changes and max(changes) > final.version:
        raise Violation(f"the final list at {final.version} is older than {max(changes)}")
    done = [o for o in operations if o.outcome == "ok" and o.what in ("create", "update")]
    newest, waiting = 0, sorted(done, key=lambda o: o.end)
    place = 0
    for operation in sorted(done, key=lambda o: o.start):
        while waiting[place].end < operation.start:
            newest = max(newest, waiting[place].version)
            place += 1
        if operation.version <= newest:
            raise Violation(f"{operation} started after {newest} had been acknowledged")


def step(operation, state):
    """The state after an operation, as `(state,)`; None if its outcome contradicts `state`. A state is None or
    `(value, version)`."""
    outcome, what = operation.outcome, operation.what
    if what == "get":
        fits = state == (operation.value, operation.version) if outcome == "ok" else state is None
        return (state,) if fits else None
    if what == "create":
        if outcome == "exists":
            return (state,) if state is not None else None
        return ((operation.value, operation.version),) if state is None else None
    if outcome == "missing":
        return (state,) if state is None else None
    matches = state is not None and (operation.expected is None or state[1] == operation.expected)
    if outcome == "conflict":
        return (state,) if state is not None and not matches else None
    if not matches:
        return None
    return (None,) if what == "delete" else ((operation.value, operation.version),)


def check_register(operations):
    """Raises an error if no order of the operations on a key explains their outcomes."""
    done = sorted((o for o in operations if o.outcome is not None), key=lambda o: o.start)
    # only deletions without a response are uncertain: the watches show whether other writes took effect
    unknown = [o for o in operations if o.outcome is None and o.what == "delete"]
    by_end = sorted(range(len(done)), key=lambda i: done[i].end)
    everything = (1 << len(done)) - 1
    best, seen, stack = 0, set(), [(0, 0, None, 0, 0)]
    while stack:
        mask, tried, state, first, soonest = stack.pop()
        # operations that are possible and do not change the state are next: no order is lost by that
        while True:
            while first < len(done) and mask >> first & 1:
                first += 1
            while soonest < len(done) and mask >> by_end[soonest] & 1:
                soonest += 1
            if mask == everything:
                return
            horizon = done[by_end[soonest]].end
            window = open_in(done, mask, first, horizon)
            idle = [i for i in window if step(done[i], state) == (state,)]
            if not idle:
                break
            for i in idle:
                mask |= 1 << i
        if (mask, tried, state) in seen:
            continue
        seen.add((mask, tried, state))
        best = max(best, first)
        for i, operation in enumerate(unknown):
            after = step(operation, state) if operation.start <= horizon and not tried >> i & 1 else None
            if after:
                stack.append((mask, tried | 1 << i, after[0], first, soonest))
        for i in window:
            after = step(done[i], state)
            if after:
                stack.append((mask | 1 << i, tried, after[0], first, soonest))
    around = "\n".join(map(str, done[max(0, best - 5) : best + 6]))
    raise Violation(f"no order explains the operations on {operations[0].key} about:\n{around}")


def open_in(done, mask, first, horizon):
    """The operations that may be next in the order: no remaining operation ended before they started."""
    window, i = [], first
    while i < len(done) and done[i].start <= horizon:
        if not mask >> i & 1:
            window.append(i)
        i += 1
    return window
