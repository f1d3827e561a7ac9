"""Discovery: announcements of devices become sections to paste. All other messages are ignored cheaply."""

from __future__ import annotations

import asyncio
import random
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from appliance import config
from appliance.adapters.kinds import KINDS
from appliance.adapters.network_search import dns_messages as dns
from appliance.adapters.network_search.mdns import Instance, MdnsAnswers, choose_address
from appliance.adapters.network_search.scan import (
    MAX_PACKETS_PER_SENDER,
    Scan,
    SearchNetwork,
    local_network,
)
from appliance.adapters.network_search.search import DISCOVERY_METHODS, Discovery, list_found
from appliance.adapters.network_search.ssdp import SsdpAnswer, decode_ssdp
from appliance.clock import Clock
from tests.fakes.announcing import announced, found_by_ssdp, message, name, record, responding, text
from tests.fakes.patience import until
from tests.fakes.process import ROOT
from tests.fakes.programs import need
from tests.fakes.rows import each_row

ELG = ("_elg", "_tcp", "local")
KEY_LIGHT = announced("_elg._tcp", "Key Light. 1", "192.168.1.20", 9123, {"ID": "3C:6A:9D:00:11:22", "md": "x=y"})
ROKU = found_by_ssdp("roku:ecp", "uuid:roku:ecp:P0A07", "http://127.0.0.1:8060/")


def test_another_parser_reads_the_question() -> None:
    query = dns.encode_query([(ELG, dns.PTR), (("Küche", *ELG), dns.SRV), (("x" * 99,), dns.TXT)])
    assert struct.unpack_from(">6H", query) == (0, 0, 3, 0, 0, 0)
    asked = [(ELG, 12), (("Küche", *ELG), 33), (("x" * 63,), 16)]
    assert query[12:] == b"".join(name(*labels) + struct.pack(">2H", type_, 1) for labels, type_ in asked)
    many = dns.encode_query((("instance" * 5, *ELG), dns.SRV) for _ in range(1000))
    assert len(many) <= dns.MAX_QUERY_BYTES and struct.unpack_from(">6H", many)[2] > 10


def test_compressed_names_in_answers_are_read_and_questions_ignored() -> None:
    head = struct.pack(">6H", 7, 0x8400, 1, 1, 0, 3)
    question = name(*ELG) + struct.pack(">2H", 12, 1)
    instance = b"\x04Lamp\xc0\x0c"  # the rest is copied from the question
    at = len(head) + len(question)
    ptr = b"\xc0\x0c" + struct.pack(">2HIH", 12, 1, 5, len(instance)) + instance
    full = struct.pack(">H", 0xC000 | (at + 12))
    srv = record(full, 33, struct.pack(">3H", 0, 0, 80) + name("h", "local"))
    other = record(full, 47, b"whatever")
    txt = record(full, 16, text({"A": "1", "a": "2", "": "x", "flag": ""}) + b"\x09cut")
    read = dns.decode_answer(head + question + ptr + srv + other + txt)
    lamp = ("Lamp", *ELG)
    assert [(each.name, each.type) for each in read] == [(ELG, 12), (lamp, 33), (lamp, 16)]
    assert read[0].target == lamp and (read[1].port, read[1].target) == (80, ("h", "local"))
    assert read[2].text == {"a": "1", "flag": "", "cut": ""}


LOOP = struct.pack(">6H", 0, 0x8400, 0, 1, 0, 0)


def _pointers(count: int) -> bytes:
    """Return a message whose second record has a name of this many pointers. Each pointer refers to the previous
    pointer."""
    head = struct.pack(">6H", 0, 0x8400, 0, 2, 0, 0)
    first = len(head) + len(record(b"\0", dns.TXT, b""))
    chain = b"\0\0" + b"".join(struct.pack(">H", 0xC000 | (first + 2 * at)) for at in range(count))
    last = struct.pack(">H", 0xC000 | (first + len(chain) - 2))
    return head + record(b"\0", dns.TXT, chain) + record(last, dns.A, b"\1\2\3\4")


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "a head alone that is cut": b"\0" * 11,
    "a question": message(flags=0) + b"x",
    "a pointer to itself": LOOP + b"\xc0\x0c" + b"\0" * 10,
    "a pointer ahead": LOOP + b"\xc0\x0e\x01a\0" + b"\0" * 10,
    "two pointers at each other": LOOP + b"\xc0\x0e\xc0\x0c" + b"\0" * 10,
    "a label that points back at its own beginning": LOOP + b"\x01a\xc0\x0c" + b"\0" * 10,
    "a long chain of pointers": _pointers(17),
    "a name of many labels": LOOP + b"\x01a" * 17 + b"\0" * 11,
    "half a pointer": LOOP + b"\xc0",
    "a name of too many bytes": LOOP + b"\x3fx".ljust(64, b"x") * 5 + b"\0" * 11,
    "a label beyond the end": LOOP + b"\x3fabc",
    "a label of another kind": LOOP + b"\x80" + b"\0" * 20,
    "a record beyond the end": LOOP + b"\0" + struct.pack(">2HIH", 1, 1, 1, 4) + b"123",
    "a record without data": LOOP + b"\0\0\1",
    "fewer records than it says": struct.pack(">6H", 0, 0x8400, 0, 65535, 65535, 65535) + b"\0" * 20,
}


@each_row("what", MALFORMED)
def test_invalid_answers_are_refused(what: str) -> None:
    with pytest.raises(dns.Malformed):
        dns.decode_answer(MALFORMED[what])


def test_the_records_of_one_message_are_limited() -> None:
    records = dns.decode_answer(message(*[record(name("a"), 1, b"\1\2\3\4")] * 500))
    assert len(records) == dns.MAX_RECORDS


def test_a_name_may_contain_some_pointers() -> None:
    assert [each.type for each in dns.decode_answer(_pointers(14))] == [dns.TXT, dns.A]


def test_random_bytes_raise_only_the_expected_error() -> None:
    generator, sound = random.Random(1), message(*KEY_LIGHT)
    answers = MdnsAnswers(["_elg._tcp"])
    for _ in range(3000):
        packet = bytearray(generator.choice((sound, ROKU)))
        for _ in range(generator.randrange(1, 12)):
            packet[generator.randrange(len(packet))] = generator.randrange(256)
        packet = packet[: generator.randrange(1, 2 * len(packet))]
        decode_ssdp(bytes(packet), "127.0.0.1")
        try:
            records = dns.decode_answer(bytes(packet))
        except dns.Malformed:
            continue
        answers.add(records, "192.168.1.20")
    list_found(DISCOVERY_METHODS, answers.list_instances(), ())
    assert len(dns.encode_query(answers.questions())) <= dns.MAX_QUERY_BYTES


def read(*packets: tuple[bytes, str], services: Sequence[str] = ("_elg._tcp",)) -> MdnsAnswers:
    """Return the answers in these packets. Each packet is given with its sender."""
    answers = MdnsAnswers(services)
    for packet, sender in packets:
        answers.add(dns.decode_answer(packet), sender)
    return answers


def test_an_instance_consists_of_the_records_of_its_sender() -> None:
    ptr, srv, txt, address = KEY_LIGHT
    key_light = Instance(
        service="_elg._tcp",
        name="Key Light. 1",
        host="192.168.1.20",
        port=9123,
        text={"id": "3C:6A:9D:00:11:22", "md": "x=y"},
    )
    assert read((message(*KEY_LIGHT), "192.168.1.20")).list_instances() == [key_light]
    answers = read((message(ptr), "192.168.1.20"), (message(srv), "192.168.1.66"))
    assert answers.list_instances() == []
    full = ("Key Light. 1", *ELG)
    assert [*answers.questions()] == [(ELG, dns.PTR), (full, dns.SRV), (full, dns.TXT)]
    answers.add(dns.decode_answer(message(srv, txt)), "192.168.1.20")
    assert [*answers.questions()] == [(ELG, dns.PTR), (("host", "local"), dns.A)]
    answers.add(dns.decode_answer(message(address)), "192.168.1.20")
    assert [*answers.questions()] == [(ELG, dns.PTR)] and answers.list_instances() == [key_light]


def test_a_flooding_sender_does_not_displace_others() -> None:
    loud = [record(name(*ELG), 12, name(f"lamp {number}", *ELG)) for number in range(100)]
    answers = read((message(*loud), "10.0.0.1"), (message(*KEY_LIGHT), "192.168.1.20"))
    assert len(answers.list_instances()) == 1
    assert len({target for target, type_ in answers.questions() if type_ == dns.SRV}) == 64


def test_many_senders_give_a_limited_list() -> None:
    lamps = message(*KEY_LIGHT)
    answers = read(*((lamps, f"10.0.{number // 250}.{number % 250 + 1}") for number in range(500)))
    assert len(answers.list_instances()) == 256
    there = instances(*(("_elg._tcp", "A", "10.0.0.1", port) for port in range(1, 2000)))
    found = list_found(DISCOVERY_METHODS, there, ())
    assert len({each.section for each in found}) == len(found) == 256


@each_row(
    ("sender", "stated", "chosen"),
    [
        ("192.168.1.5", (), "192.168.1.5"),
        ("192.168.1.5", ("192.168.1.5", "10.0.0.9"), "192.168.1.5"),
        ("192.168.1.1", ("10.0.0.9",), "10.0.0.9"),
        ("192.168.1.1", ("169.254.1.2", "10.0.0.9"), "10.0.0.9"),
        ("192.168.1.1", ("169.254.1.2",), "169.254.1.2"),
        ("192.168.1.1", ("0.0.0.0",), "192.168.1.1"),
        ("192.168.1.1", ("8.8.8.8", "127.0.0.1", "0.0.0.5", "224.0.0.1", "255.255.255.255"), "192.168.1.1"),
        ("127.0.0.1", ("127.0.0.2",), "127.0.0.2"),
    ],
)
def test_only_addresses_of_the_local_network_are_accepted(sender: str, stated: tuple[str, ...], chosen: str) -> None:
    assert choose_address(sender, stated) == chosen


@each_row(
    ("packet", "is_taken"),
    [
        (ROKU, True),
        (ROKU.replace(b"Location:", b"LOCATION:   "), True),
        (ROKU.replace(b"127.0.0.1", b"127.0.0.2"), False),
        (ROKU.replace(b"http://127.0.0.1:8060", b"http://127.0.0.1@evil.example"), False),
        (ROKU.replace(b"8060", b"99999"), False),
        (ROKU.replace(b"http:", b"file:"), False),
        (ROKU.replace(b"200 OK", b"404 No"), False),
        (b"HTTP/1.1 200 OK", False),
        (b"HTTP/1.1 200 OK\r\nLocation: http://[::1", False),
        (b"NOTIFY * HTTP/1.1\r\n\r\n", False),
    ],
)
def test_an_ssdp_answer_must_name_the_address_of_its_sender(packet: bytes, is_taken: bool) -> None:
    assert (decode_ssdp(packet, "127.0.0.1") is not None) == is_taken


def instances(*stated: tuple[str, str, str, int]) -> list[Instance]:
    """Return instances without texts: service, name, host, port."""
    return [Instance(service=each[0], name=each[1], host=each[2], port=each[3], text={}) for each in stated]


def test_each_kinds_section_is_valid_and_has_its_own_name() -> None:
    ways = [each for each in DISCOVERY_METHODS if each.kind in KINDS]
    there = instances(
        ("_elg._tcp", "Elgato Key Light", "192.168.1.20", 9123),
        ("_elg._tcp", "Elgato Key Light", "192.168.1.21", 9123),
        ("_elg._tcp", 'a"]\n[api]\u202e', "192.168.1.22", 9123),
        ("_wled._tcp", "Küche", "192.168.1.30", 80),
        ("_mqtt._tcp", "Broker", "192.168.1.40", 1883),
        ("_mqtt._tcp", "Broker", "192.168.1.40", 1884),
        ("_hue._tcp", "of no kind that there is", "192.168.1.50", 443),
    )
    answers = [SsdpAnswer(target="roku:ecp", usn="uuid:roku:ecp:P0A07", host="192.168.1.60", port=8060)]
    found = list_found(ways, there, answers, ("elgato_lights",))
    assert [(each.kind, each.name, each.address, each.serial) for each in found] == [
        ("elgato_lights", "Elgato Key Light", "192.168.1.20:9123", None),
        ("elgato_lights", "Elgato Key Light", "192.168.1.21:9123", None),
        ("elgato_lights", 'a"] [api]', "192.168.1.22:9123", None),
        ("mqtt", "Broker", "192.168.1.40:1883", None),
        ("mqtt", "Broker", "192.168.1.40:1884", None),
        ("roku_tv", "Roku P0A07", "192.168.1.60:8060", "P0A07"),
        ("wled", "Küche", "192.168.1.30:80", None),
    ]
    sections = [each.section.partition("]")[0].removeprefix("[adapters.") for each in found]
    assert sections == [
        "elgato_key_light",
        "elgato_key_light_2",
        "elgato_lights_a_api",
        "mqtt",
        "mqtt_broker",
        "roku_tv",
        "wled",
    ]
    pasted = config.parse("\n".join(each.section for each in found), "default.toml", {}).adapters
    assert [*pasted] == sections
    assert (pasted["mqtt_broker"].port, pasted["wled"].base_url) == (1884, "http://192.168.1.30")


def test_a_kind_in_lua_is_found_if_its_file_exists(tmp_path: Path) -> None:
    file = tmp_path / "config" / "default.toml"
    known = set(config.list_kinds(file))
    assert {"shelly", "elgato_lights"} <= known
    (file.parent / "adapters").mkdir(parents=True)
    (file.parent / "adapters" / "hue.lua").write_text("return {}")
    assert "hue" in config.list_kinds(file)
    [found] = list_found(DISCOVERY_METHODS, instances(("_shelly._tcp", "Kitchen", "10.0.0.2", 80)), ())
    assert type(config.parse(found.section, str(file), {}).adapters["shelly"]).__name__ == "LuaSection"


def test_a_device_found_in_two_ways_is_listed_once() -> None:
    ways = [each for each in DISCOVERY_METHODS if each.kind in ("shelly", "hue")]
    there = instances(
        ("_http._tcp", "ShellyPlus1-aa", "10.0.0.2", 80),
        ("_shelly._tcp", "shellyplus1-aa", "10.0.0.2", 80),
        ("_http._tcp", "printer", "10.0.0.3", 80),
        ("_hue._tcp", "Bridge", "10.0.0.4", 443),
    )
    found = list_found(ways, there, ())
    assert [(each.kind, each.section) for each in found] == [
        ("hue", '[adapters.hue]\nbase_url = "https://10.0.0.4"\n'),
        ("shelly", '[adapters.shelly]\nbase_url = "http://10.0.0.2"\n'),
    ]


def test_a_homewizard_with_only_version_2_is_found() -> None:
    ways = [each for each in DISCOVERY_METHODS if each.kind == "homewizard"]
    there = [
        Instance(service=service, name=name, host=host, port=port, text={"serial": serial})
        for service, name, host, port, serial in (
            ("_homewizard._tcp", "battery-DDEEFF", "10.0.0.2", 443, "AABBCCDDEEFF"),
            ("_homewizard._tcp", "p1meter-334455", "10.0.0.3", 443, "001122334455"),
            ("_hwenergy._tcp", "p1meter-334455", "10.0.0.3", 80, "001122334455"),
        )
    ]
    assert [(each.serial, each.section.partition("base_url = ")[2]) for each in list_found(ways, there, ())] == [
        ("AABBCCDDEEFF", '"https://10.0.0.2"\n'),
        ("001122334455", '"http://10.0.0.3"\n'),
    ]


class Searching(Clock):
    """A clock that ends the search when this number of packets has been read."""

    def __init__(self, packets: int) -> None:
        self.scan: Scan | None = None
        self._packets = packets

    async def sleep(self, seconds: float) -> None:
        """Wait for the packets, except before the first question."""
        if seconds and self.scan is not None:
            scan = self.scan
            await until(lambda: scan.packets >= self._packets)


async def scan(network: SearchNetwork, packets: int, seconds: float = 0.1) -> Scan:
    """Search for lamps and Rokus until this number of packets has been read."""
    clock = Searching(packets)
    clock.scan = Scan(network, ["_elg._tcp"], ["roku:ecp"], clock)
    await clock.scan.run(seconds)
    return clock.scan


async def test_a_search_collects_answers_among_invalid_packets() -> None:
    asked: list[bytes] = []

    def answer(question: bytes) -> list[bytes]:
        asked.append(question)
        return [b"\xff" * 9000, b"", b"HTTP/1.1 nonsense", message(*KEY_LIGHT)]

    with responding(answer) as mdns, responding(lambda question: [ROKU, ROKU]) as other:
        done = await scan(SearchNetwork(mdns=mdns, ssdp=other), packets=6)
    assert asked == [dns.encode_query([(ELG, dns.PTR)])]
    assert [each.name for each in done.mdns.list_instances()] == ["Key Light. 1"]
    assert [each.usn for each in done.ssdp] == ["uuid:roku:ecp:P0A07"]


async def test_the_packets_of_one_sender_are_limited() -> None:
    with responding(lambda _: [b"x"] * 90) as mdns, responding(lambda _: []) as other:
        done = await scan(SearchNetwork(mdns=mdns, ssdp=other), packets=MAX_PACKETS_PER_SENDER)
        assert done.packets == MAX_PACKETS_PER_SENDER


async def test_without_a_network_a_search_ends_at_once() -> None:
    assert (await scan(SearchNetwork(interfaces=()), packets=1)).packets == 0
    unreachable = SearchNetwork(mdns=("255.255.255.255", 1), ssdp=("255.255.255.255", 1))
    assert (await scan(unreachable, packets=0)).packets == 0
    assert all(each == "" or not each.startswith("127.") for each in local_network().interfaces)


async def test_a_request_during_a_search_gets_its_result() -> None:
    with responding(lambda _: []) as other, responding(lambda _: [message(*KEY_LIGHT)]) as mdns:
        searches: list[SearchNetwork] = []

        def network() -> SearchNetwork:
            searches.append(SearchNetwork(mdns=mdns, ssdp=other))
            return searches[-1]

        discovery = Discovery(Clock(), KINDS.keys, tuple, network)
        first = asyncio.ensure_future(discovery.search(20))
        others = [asyncio.ensure_future(discovery.search(0.01)) for _ in range(4)]
        await until(lambda: searches)
        first.cancel()
        results = await asyncio.gather(*others)
    assert len(searches) == 2 and all(each is results[0] for each in results)


DRIVER = """
import asyncio, fcntl, socket, struct, sys
from appliance.adapters.network_search.search import Discovery
from appliance.adapters.network_search.scan import SearchNetwork
from appliance.clock import Clock
from tests.fakes.announcing import announced, found_by_ssdp, message, responding
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1 | 64 | 4096))  # loopback up, with multicast
lamp = message(*announced("_elg._tcp", "Lamp", "127.0.0.1", 9123, {"id": "AA"}))
roku = found_by_ssdp("roku:ecp", "uuid:roku:ecp:P0A07", "http://127.0.0.1:8060/")
network = SearchNetwork(interfaces=("127.0.0.1",))
discovery = Discovery(Clock(), lambda: ("elgato_lights", "roku_tv"), tuple, lambda: network)
groups = responding(lambda q: [lamp], group=network.mdns), responding(lambda q: [roku], group=network.ssdp)
with groups[0], groups[1]:
    for each in asyncio.run(discovery.search(1)):
        print(each.kind, each.name, each.address, each.serial)
"""


@pytest.mark.slow
def test_groups_are_asked_in_a_network_of_the_tests_own() -> None:
    command = [need("unshare"), "--map-root-user", "--net", "--"]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("no namespace can be made here")
    done = subprocess.run([*command, sys.executable, "-c", DRIVER], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines() == [
        "elgato_lights Lamp 127.0.0.1:9123 AA",
        "roku_tv Roku P0A07 127.0.0.1:8060 P0A07",
    ], done.stderr
