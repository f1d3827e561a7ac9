// Dutch.

export const words = `
nav: Onderdelen
yes: ja
no: nee
save: Opslaan
set: Instellen
create: Maken
delete: Verwijderen
cancel: Annuleren
running: Nu bezig
done: Klaar
dismiss: Verbergen
refresh: Opnieuw laden
rename: {name} hernoemen
saturation: Verzadiging
simulate: Simuleren
simulate.event: Gebeurtenis
simulate.send: Versturen
offline: De centrale is onbereikbaar.
files: Lua-bestanden
key.revoke.what: {name} intrekken
scenes: Scènes
groups: Groepen
rooms: Kamers
automations: Automatiseringen
outcome: {done} van {all} gedaan
nothing: Nog niets.
broken: Dit kan niet worden getoond.
delete.what: {name} verwijderen
offline.since: De centrale is onbereikbaar sinds {time}.
confirm.others: {action}: ook wat geen lamp is ({names})?
confirm.command: {action}: {name}?
confirm.delete: {name} verwijderen?
confirm.revoke: De sleutel {name} intrekken? Wie hem gebruikt, verliest meteen de toegang.
period.hour: Uur
period.day: Dag
period.week: Week
period.month: Maand
period.year: Jaar
files.wrong: Fouten in Lua-bestanden: {count}. Zo zijn deze bestanden niet van kracht:
backup.what: Toestand, configuratie en Lua-bestanden, zonder de geheimen van de sleutels
backup.download: Downloaden
smoke.true: Rook
smoke.false: Geen rook
water_leak.true: Water
water_leak.false: Droog
presence.true: Aanwezig
presence.false: Afwezig
label.own: {name} (eigen)
away: {state} sinds {time}
away.hint: Kijk of het stroom heeft en binnen bereik is. Hieronder staat wat het het laatst toonde.
code: Code
code.ask: {name} vraagt een code.
search: Apparaten en kamers zoeken
search.found: Gevonden: {count}
search.none: Zo heet geen apparaat en geen kamer.
edit: Favorieten en volgorde
favourites: Favorieten
favourites.mark: Favoriet: {name}
hidden.mark: {name} verbergen
hidden.count: Verborgen: {count} (zie ‘Favorieten en volgorde’)
move: {name} verplaatsen: slepen of pijltjestoetsen
fold: {name} inklappen
wall: Wandpaneel
wall.fill: Volledig scherm
room.gone: Deze kamer bestaat niet.
room.day: De laatste dag
timers: Timers
timer.due: eindigt {time}
variables: Variabelen
variable.value: Waarde van {name}
variable.new: Naam van een nieuwe variabele
summary: Het huis nu
[nav]
home: Thuis
automations: Automati­sering
settings: Instel­lingen
[error]
unreachable: De centrale antwoordt niet.
status: De centrale antwoordde met een fout ({status}).
other_origin: Deze pagina praat alleen met haar eigen centrale, niet met {api}.
no_page: Er is geen pagina {address}. Dit is thuis.
device_unreachable: Het apparaat antwoordt niet: {sentence}
insufficient_permissions: Je sleutel mag dit niet.
store_unavailable: De kaart van het kastje neemt nu geen wijzigingen aan: {sentence}
adapter_failed: De adapter van het apparaat heeft een fout: {sentence}
body_too_large: Dat is te groot: {sentence}
busy: Er wachten te veel opdrachten op dit apparaat; deze is niet verstuurd. Probeer het opnieuw.
cancelled: Het is van buitenaf beëindigd.
device_refused: Het apparaat heeft geweigerd: {sentence}
dropped_by_mode: Het loopt al en laat geen tweede keer toe.
internal: De centrale heeft een fout; haar logboek noemt die.
invalid_request: De centrale begrijpt dit niet: {sentence}
invalid_value: Zo kan het niet: {sentence}
not_found: Dat is er niet meer: {sentence}
not_ready: De centrale start nog: {sentence}
rate_limited: Te veel verzoeken tegelijk. Probeer het zo opnieuw.
script_failed: Een Lua-bestand is mislukt: {sentence}
stopping: De centrale stopt; of de opdracht is uitgevoerd, is niet bekend.
unsupported: Dat kan dit apparaat niet: {sentence}
[home]
devices: Apparaten
unassigned: Zonder kamer
empty: Nog geen apparaten.
members: Apparaten: {count}
on: Nu aan
all: Alle {count}
[device]
events: Gebeurtenissen
gone: Dit apparaat bestaat niet.
facts: Over dit apparaat
history: Waarden en verloop
no_history: In deze tijd is niets vastgelegd.
compare: Vergelijken
by_day: {attribute} per dag
by_month: {attribute} per maand
hours: Ouder dan wat de centrale onthoudt: uren met gemiddelde, laagste en hoogste.
picture: {attribute}, waarden: {count}
no_picture: Er is nog geen beeld gekomen.
still: Beeld van {name}
table: Als tabel
uses: Gebruikt door
unused: Geen automatisering of scène noemt het, en niemand heeft het sinds de start bediend.
lua: Opdrachten in Lua
[fact]
manufacturer: Fabrikant
model: Model
firmware: Firmware
serial: Serienummer
area: Gebied
parent: Deel van
room: Kamer
updated: Laatste wijziging
seen: Laatst gezien
id: Kenmerk
alias: Korte id
[source]
device: met de hand
room: met de kamer
group: met de groep
scene: scène
automation: automatisering
[automation]
no_run: geen uitvoering bekend
gone: Deze automatisering bestaat niet.
why: Wanneer ze draait
next: De volgende keer
last: Laatste keer
off: uitgeschakeld
fill_in: Uit: vul bovenaan het bestand de namen in en zet haar dan aan.
other_zone: Tijden zijn die van de browser; automatiseringen gebruiken {zone}.
run: Nu uitvoeren
history: Wat er gebeurde
waits: als er iets gebeurt
ran: laatst {time}{took}
due: volgende keer {time}
warned: Gedaan, met waarschuwingen
source: Bestand bewerken
[reason]
condition: Niet uitgevoerd: voorwaarde {detail}
cooldown: Niet uitgevoerd, te snel na de laatste keer: {detail}
duplicate: Niet uitgevoerd, hetzelfde was net gebeurd: {detail}
mode: Niet naast een andere uitvoering uitgevoerd: {detail}
disabled: Niet uitgevoerd, zij is uitgeschakeld.
brake: Gepauzeerd, zij startte zichzelf te vaak: {detail}
failed: Mislukt: {detail}
was: was {value}
[step]
sleep: {duration} gewacht
wait: Gewacht op {what}
[trigger]
title: Start wanneer
change: {what} verandert
event: {who}: gebeurtenis {event}
any_event: {who}: een willekeurige gebeurtenis
at: Om {time}
cron: Volgens de expressie {expression} ({zone})
interval: Elke {duration}
variable: Variabele {name}
timer: De timer {name} loopt af
webhook: De hook {hook} wordt aangeroepen
adapter: De adapter {name} start
any_adapter: Een adapter start
any_device: Een willekeurig apparaat
fails: Er gaat iets mis
room: Kamer {name}
group: Groep {name}
lasting: {what}, {duration} lang
now: nu {value}
[condition]
title: Alleen als
after_sunrise: Na zonsopkomst
after_sunset: Na zonsondergang
before_sunrise: Voor zonsopkomst
before_sunset: Voor zonsondergang
least: Minstens {count} van de apparaten
most: Hoogstens {count} van de apparaten
all: Al deze
any: Minstens één van deze
none: Geen van deze
yes: klopt
no: klopt niet
[doing]
sleep: Wacht tot {time}
computing: Rekent sinds {duration}
[unit]
degree: °{of}
percent: %
[arrange]
places: Welk apparaat is waar
up: {name} omhoog
down: {name} omlaag
leave: {name} eruit halen
add: Een apparaat aan {name} toevoegen
new_rooms: Naam van een nieuwe kamer
new_groups: Naam van een nieuwe groep
choose: {name} kiezen
join: Gekozen apparaten in een groep: {count}
move: Gekozen apparaten verplaatsen: {count}
[box]
adapters: Adapters
last_success: Laatste antwoord {time}
figures: De centrale
events: Gebeurtenissen
log: Logboek
discovery: Apparaten in het netwerk
page: Deze pagina
role: je sleutel mag: {role}
forget: Sleutel vergeten
[figure]
version: Versie
uptime: Draait sinds
memory: Geheugen
written: Op de SD-kaart geschreven
[role]
read: bekijken
write: bekijken en bedienen
admin: alles
automation: alles, voor programma’s
[key]
ask: De sleutel van dit huis
missing: Hier staat hij: sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (container); lares demo toont hem. Een nieuwe: sudo lares key create --label me --role admin
rejected: De centrale accepteert deze sleutel niet. Voer een andere in.
secret: Sleutel
use: Openen
label: Naam van een nieuwe sleutel
role: Hij mag
revoke: Intrekken
made: Sleutel voor {name}
once: Alleen nu te zien: scan met een telefoon om het huis daar te openen, of kopieer de tekst.
qr: QR-code met adres en sleutel
loopback: ‘{host}’ is een adres van dit apparaat alleen: de code brengt een telefoon nergens. Laat de centrale in je netwerk luisteren, [api] bind_address = "0.0.0.0:3000", of gebruik een reverse proxy, en open deze pagina op het adres van het kastje.
[pairing]
code: Koppelcode, of tekst van de QR-code
pair: Koppelen
scan: Scannen
hold: Houd de QR-code voor de camera.
no_camera: De camera is niet te gebruiken ({reason}). Typ de code.
done: Gekoppeld: {names}
title: Koppeling
share: Delen
shared: In de andere app, binnen {minutes} minuten: scan dit of voer de code in.
qr: Koppelcode voor de andere app
identify: Identificeren
unpair: Ontkoppelen
confirm: {names} ontkoppelen? Het apparaat vergeet dit huis.
press: Voor de sleutel: druk op de knop van het apparaat of de bridge en dan binnen 30 seconden op ‘Koppelen’.
paste: Voeg deze regel toe aan [adapters.{name}] in config/default.toml:
[hook]
label: Id van een nieuwe hook
what: Een adres dat een telefoon, een knop of een script aanroept; een automatisering met de trigger webhook hoort het.
once: Alleen nu te zien: wie dit adres heeft, kan de hook aanroepen en verder niets.
unheard: Niets luistert nog naar deze hook.
qr: QR-code met het adres van de hook
address: Adres
[discovery]
what: Zoekt drie seconden naar apparaten die zich melden
search: Zoeken
none: Niets gevonden. Een centrale hoort geen apparaten in een ander VLAN, en ook niet vanuit een container.
section: Sectie voor {name}
[action]
on: Aan
off: Uit
toggle: Omschakelen
set: ingesteld
increase: Verhogen
decrease: Verlagen
lock: Op slot
unlock: Van slot
open: Openen
close: Sluiten
stop: Stop
play: Afspelen
next: Volgende
previous: Vorige
press: Indrukken
return_to_base: Naar station
clean_spot: Hier schoonmaken
start_mowing: Maaien
start: Starten
pause: Pauze
dock: Naar station
locate: Zoeken
install: Installeren
[value]
short: Kort
long: Lang
on: Aan
off: Uit
online: Verbonden
offline: Niet verbonden
unavailable: Niet beschik­baar
unknown: Onbekend
open: Open
closed: Dicht
opening: Gaat open
closing: Gaat dicht
stopped: Gestopt
jammed: Geblokkeerd
locked: Op slot
unlocked: Van slot
detected: Gezien
clear: Rustig
occupied: Bezet
unoccupied: Vrij
heat: Verwarmen
cool: Koelen
auto: Automatisch
heat_cool: Verwarmen en koelen
dry: Drogen
fan_only: Alleen ventilator
idle: In rust
heating: Verwarmt
cooling: Koelt
playing: Speelt
paused: Gepauzeerd
good: Goed
poor: Slecht
running: Draait
starting: Start
degraded: Storing
ok: Gedaan
error: Mislukt
unsupported: Hier niet mogelijk
skipped: Niet uitgevoerd
dropped: Vervallen
cancelled: Geannuleerd
timeout: Duurde te lang
disarmed: Uitgeschakeld
armed_home: Ingeschakeld, thuis
armed_away: Ingeschakeld, weg
armed_night: Ingeschakeld, nacht
armed_vacation: Ingeschakeld, vakantie
armed_custom_bypass: Deels ingeschakeld
arming: Schakelt in
disarming: Schakelt uit
pending: Wacht op de code
triggered: Alarm
cleaning: Maakt schoon
docked: Op het station
returning: Keert terug
mowing: Maait
forward: Vooruit
reverse: Achteruit
none: Geen
[attribute]
white: Wit
cold_white: Koud wit
warm_white: Warm wit
flash: Knipperen
power: Aan/uit
brightness: Helderheid
color_temperature: Warmte
color: Kleur
fan_speed: Zuigkracht
percentage: Snelheid
duration: Duur in seconden
volume_level: Volume
tone: Toon
oscillation: Zwenken
direction: Richting
target_humidity: Gewenste vochtigheid
mode: Stand
fan_mode: Ventilator
swing_mode: Zwenken
color_mode: Kleurmodus
effect: Effect
transition: Overgang
illuminance: Licht
temperature: Temperatuur
temperature_outdoor: Buiten
temperature_apparent: Gevoel
humidity: Vochtigheid
pressure: Luchtdruk
co2: CO₂
air_quality: Lucht
battery: Batterij
motion: Beweging
contact: Contact
occupancy: Bezetting
presence: Aanwezigheid
smoke: Rook
water_leak: Waterlek
target_temperature: Doel
hvac_mode: Stand
hvac_state: Toestand
preset_mode: Voorkeuze
power_consumption: Vermogen
voltage: Spanning
current: Stroom
energy_total: Energie
energy_today: Vandaag
energy_yesterday: Gisteren
energy_month: Maand
volume: Volume
muted: Gedempt
media_source: Bron
media_app: App
media_title: Titel
media_playback: Afspelen
lock: Slot
door: Deur
garage_door: Garage
cover_position: Stand
cover_tilt: Kanteling
wind_speed: Wind
wind_direction: Wind uit
rainfall: Regen
weather_condition: Weer
cloud_coverage: Wolken
state: Toestand
[settings]
devices: Apparaten en adapters
devices.what: Vinden, toevoegen, koppelen
rooms: Kamers en groepen
rooms.what: Namen, en waar elk apparaat is
keys: Sleutels
keys.what: Toegang voor telefoons, mensen en programma’s
hooks: Hooks
hooks.what: Adressen die automatiseringen starten
backup: Back-up
backup.what: Alles als één bestand downloaden
look: Uiterlijk en taal
look.what: Van deze browser
about: Over de centrale
about.what: Versie, geheugen en SD-kaart
diagnostics: Diagnose
diagnostics.what: Logboek en live gebeurtenissen
add: Een apparaat toevoegen
[look]
scheme: Kleuren
auto: Zoals het apparaat
light: Licht
dark: Donker
language: Taal
browser: Zoals de browser
hint: Beide worden alleen in deze browser bewaard.
[summary]
lit_one: {name} aan
lit_many: {count} lampen aan
indoors: {value} binnen
open_one: {name} open
open_many: {count} open
unlocked_one: {name} niet op slot
unlocked_many: {count} niet op slot
locked_one: {name} op slot
locked_many: Alles op slot
away_one: {name} onbereikbaar
away_many: {count} onbereikbaar
low_one: {name}: batterij {share}
low_many: {count} batterijen zwak
alarm_many: {count} alarmen
[state]
open: {share} open
[first]
search: Mijn netwerk doorzoeken
add: Een broker of ander apparaat verbinden
docs: Het bestand docs/first-evening.md toont de eerste stappen.
[search]
close: Zoeken sluiten
[sheet]
close: Sluiten
more: Alles over dit apparaat
today: De laatste dag
why: Waarom is het zo?
[reading]
detected: Beweging
clear: Geen beweging
occupied: Bezet
unoccupied: Niemand
[chart]
mean: Gemiddelde
span: Laagste tot hoogste
[cause]
device_state_change: Een apparaat verandert
weather_state: Het weer verandert
device_event: Een apparaat meldt een gebeurtenis
variable_change: Een variabele verandert
timer: Een timer loopt af
webhook: Een hook wordt aangeroepen
adapter_lifecycle: Een adapter start of stopt
system_error: Iets mislukt
wall_clock: Op haar tijd
cron: Op haar tijd
date: Op haar tijd
interval: Op haar interval
sunrise: Bij zonsopkomst
sunset: Bij zonsondergang
[editor]
try: Nu proberen
simulate: Komende 24 uur
versions: Eerdere versies
saved: Opgeslagen en van kracht.
saved_warned: Opgeslagen, met waarschuwingen: {count}. De marge toont ze.
unsaved: Nog niet opgeslagen.
other: Iemand anders heeft dit bestand gewijzigd. De verschillen met jouw tekst:
theirs: De andere tekst nemen
mine: Mijn tekst opslaan
line: Regel {line}:
keys: Ctrl+S slaat op, Ctrl+Spatie vult namen aan, Ctrl+F zoekt, F8 gaat naar de volgende fout. Tab verlaat het veld.
save_and_run: Opslaan en uitvoeren
no_id: Het bestand noemt nog geen id.
with_commands: Met haar opdrachten
look: Vooruitkijken
never: Niets start haar in deze tijd.
cut: Alleen tot {time}: de rest duurt te lang.
restore: Deze tekst nemen
difference: Verschillen
equal: Geen verschillen.
runs: Ze draait
test: Testen
events: Gebeurtenissen, één per regel (18:00 hall:motion motion detected)
settings: Instellingen, één per regel (key = value)
recording: Opname (bestand van een eerdere test)
replay: Afspelen
record: Opname bewaren
[new]
title: Nieuw
recipes: Uit een recept
gone: Het recept {name} bestaat niet.
empty: Vanuit een leeg bestand
empty_what: Je schrijft het in Lua, met aanvulling en controles.
automation: Automatisering
scene: Scène
adapter: Soort adapter
adapter_name: Nieuwe soort
automation_name: Nieuwe automatisering
scene_name: Nieuwe scène
name: Naam
make: Maken
anyway: Toch maken
no_device: {label}: geen apparaat van dit huis toont dat.
no_room: {label}: maak eerst een kamer bij Instellingen.
no_group: {label}: maak eerst een groep bij Instellingen.
[duration]
second: seconden
minute: minuten
hour: uren
[add]
title: Via het adres toevoegen
kind: Soort
base_url: Adres (URL)
url: Adres (URL)
host: Hostnaam of IP-adres
ip_address: IP-adres
port: Poort
username: Gebruikersnaam (indien nodig)
password: Wachtwoord (indien nodig)
section: Naam van de sectie
rule: Gebruik alleen a-z, 0-9 en _.
make: Toevoegen
this: Dit apparaat toevoegen
done: Toegevoegd. Het start nu.
other: Elke andere soort en sleutel: de configuratie bewerken.
confirm_remove: {name} uit de configuratie verwijderen? De apparaten verdwijnen; hun kamers en namen blijven.
more: Meer instellingen
test: Testen
found: Het antwoordt: {names}
found_none: Het antwoordt, maar toont nog geen apparaat.
trace: Verzoeken en antwoorden
edit: {name} wijzigen
kept: Ongewijzigd
in_file: Wijzig dit in het bestand.
gone: De sectie {name} bestaat niet.
token: Token (indien nodig)
default: Zoals gewoonlijk: {value}
saved: Opgeslagen. Het start nu opnieuw.
[kind]
mqtt: MQTT-broker (Zigbee2MQTT, ESPHome, Tasmota)
hue: Philips Hue-bridge
tasmota_http: Tasmota via HTTP
elgato_lights: Elgato-lamp
roku_tv: Roku TV
matter: Matter-server
fritzbox: FRITZ!Box (wie er thuis is)
notify: Berichten
virtual: Virtuele apparaten
[copy]
what: Kopiëren: {name}
done: Gekopieerd: {name}
[alias]
rule: Gebruik a-z, 0-9 en _, en begin met een letter.
offer: Geef het ook een korte id: automatiseringen kunnen die gebruiken in plaats van de lange.
`;
