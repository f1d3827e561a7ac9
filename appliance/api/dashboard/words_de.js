// German.

export const words = `
nav: Hauptbereiche
yes: ja
no: nein
save: Sichern
set: Setzen
create: Anlegen
delete: Löschen
cancel: Abbrechen
running: Läuft gerade
done: Fertig
dismiss: Ausblenden
refresh: Neu laden
rename: {name} umbenennen
saturation: Sättigung
simulate: Simulieren
simulate.event: Ereignis
simulate.send: Senden
offline: Die Zentrale ist nicht erreichbar.
files: Lua-Dateien
key.revoke.what: {name} sperren
scenes: Szenen
groups: Gruppen
rooms: Räume
automations: Automationen
outcome: {done} von {all} erledigt
nothing: Noch nichts.
broken: Das lässt sich nicht anzeigen.
delete.what: {name} löschen
offline.since: Die Zentrale ist seit {time} nicht erreichbar.
confirm.others: {action}: auch, was kein Licht ist ({names})?
confirm.command: {name}: {action}?
confirm.delete: {name} löschen?
confirm.revoke: {name} sperren? Wer den Schlüssel benutzt, ist sofort ausgesperrt.
period.hour: Stunde
period.day: Tag
period.week: Woche
period.month: Monat
period.year: Jahr
files.wrong: Fehler in Lua-Dateien: {count}. So sind diese Dateien nicht in Kraft:
backup.what: Zustand, Konfiguration und Lua-Dateien, ohne Schlüssel im Klartext
backup.download: Herunterladen
smoke.true: Rauch
smoke.false: Kein Rauch
water_leak.true: Wasser
water_leak.false: Trocken
presence.true: Anwesend
presence.false: Abwesend
label.own: {name} (eigene)
away: {state} seit {time}
away.hint: Prüfe, ob es Strom hat und in Reichweite ist. Unten steht, was es zuletzt zeigte.
code: Code
code.ask: {name} verlangt einen Code.
search: Geräte und Räume suchen
search.found: Gefunden: {count}
search.none: So heißt kein Gerät und kein Raum.
edit: Favoriten und Reihenfolge
favourites: Favoriten
favourites.mark: Favorit: {name}
hidden.mark: {name} verbergen
hidden.count: Verborgen: {count} (siehe „Favoriten und Reihenfolge“)
move: {name} verschieben: ziehen oder Pfeiltasten
fold: {name} zuklappen
wall: Wandtafel
wall.fill: Ganzer Bildschirm
room.gone: Diesen Raum gibt es nicht.
room.day: Der letzte Tag
timers: Timer
timer.due: endet {time}
variables: Variablen
variable.value: Wert von {name}
variable.new: Name einer neuen Variablen
summary: Das Zuhause jetzt
[nav]
home: Zuhause
automations: Automa­tionen
settings: Einstel­lungen
[error]
unreachable: Die Zentrale antwortet nicht.
status: Die Zentrale meldet einen Fehler ({status}).
other_origin: Diese Seite spricht nur mit ihrer eigenen Zentrale, nicht mit {api}.
no_page: Eine Seite {address} gibt es nicht. Dies ist das Zuhause.
device_unreachable: Das Gerät antwortet nicht: {sentence}
insufficient_permissions: Dein Schlüssel erlaubt das nicht.
store_unavailable: Die Karte der Box nimmt gerade keine Änderungen an: {sentence}
adapter_failed: Der Adapter des Geräts hat einen Fehler: {sentence}
body_too_large: Das ist zu groß: {sentence}
busy: Für das Gerät warten zu viele Befehle; dieser wurde nicht gesendet. Versuche es noch einmal.
cancelled: Es wurde von außen beendet.
device_refused: Das Gerät hat abgelehnt: {sentence}
dropped_by_mode: Es läuft schon und lässt keinen weiteren Lauf zu.
internal: Die Zentrale hat einen Fehler; ihr Protokoll nennt ihn.
invalid_request: Die Zentrale versteht das nicht: {sentence}
invalid_value: Das geht so nicht: {sentence}
not_found: Das gibt es nicht mehr: {sentence}
not_ready: Die Zentrale startet noch: {sentence}
rate_limited: Zu viele Anfragen auf einmal. Versuche es gleich noch einmal.
script_failed: Eine Lua-Datei ist fehlgeschlagen: {sentence}
stopping: Die Zentrale hält an; ob der Befehl ausgeführt wurde, ist nicht bekannt.
unsupported: Das kann dieses Gerät nicht: {sentence}
[home]
devices: Geräte
unassigned: Ohne Raum
empty: Noch keine Geräte.
members: Geräte: {count}
on: Gerade an
all: Alle {count}
[device]
events: Ereignisse
gone: Dieses Gerät gibt es nicht.
facts: Über dieses Gerät
history: Werte und Verlauf
no_history: In dieser Zeit wurde nichts aufgezeichnet.
compare: Vergleichen
by_day: {attribute} je Tag
by_month: {attribute} je Monat
hours: Älteres als das Gedächtnis der Zentrale: Stunden mit Mittel, Tiefst- und Höchstwert.
picture: {attribute}, Werte: {count}
no_picture: Noch ist kein Bild gekommen.
still: Bild von {name}
table: Als Tabelle
uses: Verwendet von
unused: Keine Automation oder Szene nennt es, und seit dem Start gab es keinen Befehl.
lua: Befehle in Lua
[fact]
manufacturer: Hersteller
model: Modell
firmware: Firmware
serial: Seriennummer
area: Bereich
parent: Teil von
room: Raum
updated: Letzte Änderung
seen: Zuletzt gesehen
id: Kennung
alias: Kurze Kennung
[source]
device: von Hand
room: mit dem Raum
group: mit der Gruppe
scene: Szene
automation: Automation
[automation]
no_run: kein Lauf bekannt
gone: Diese Automation gibt es nicht.
why: Wann sie läuft
next: Nächstes Mal
last: Letzter Lauf
off: ausgeschaltet
fill_in: Aus: Trag oben in der Datei die Namen ein, dann schalte sie ein.
other_zone: Zeiten hier gelten in der Zeitzone des Browsers; Automationen nutzen {zone}.
run: Jetzt ausführen
history: Was geschah
waits: wenn etwas geschieht
ran: zuletzt {time}{took}
due: nächstes Mal {time}
warned: Erledigt, mit Warnungen
source: Datei bearbeiten
[reason]
condition: Nicht ausgeführt: Bedingung {detail}
cooldown: Nicht ausgeführt, zu bald nach dem letzten Mal: {detail}
duplicate: Nicht ausgeführt, dasselbe war eben geschehen: {detail}
mode: Nicht neben einem anderen Lauf ausgeführt: {detail}
disabled: Nicht ausgeführt, sie ist ausgeschaltet.
brake: Angehalten, sie hat sich zu oft selbst ausgelöst: {detail}
failed: Fehlgeschlagen: {detail}
was: war {value}
[step]
sleep: {duration} gewartet
wait: Gewartet auf {what}
[trigger]
title: Läuft, wenn
change: {what} ändert sich
event: {who}: Ereignis {event}
any_event: {who}: irgendein Ereignis
at: Um {time}
cron: Nach dem Ausdruck {expression} ({zone})
interval: Alle {duration}
variable: Variable {name}
timer: Der Timer {name} endet
webhook: Der Hook {hook} wird aufgerufen
adapter: Der Adapter {name} startet
any_adapter: Ein Adapter startet
any_device: Irgendein Gerät
fails: Etwas schlägt fehl
room: Raum {name}
group: Gruppe {name}
lasting: {what}, {duration} lang
now: jetzt {value}
[condition]
title: Nur wenn
after_sunrise: Nach Sonnenaufgang
after_sunset: Nach Sonnenuntergang
before_sunrise: Vor Sonnenaufgang
before_sunset: Vor Sonnenuntergang
least: Mindestens {count} der Geräte
most: Höchstens {count} der Geräte
all: Alle diese Bedingungen
any: Mindestens eine dieser Bedingungen
none: Keine dieser Bedingungen
yes: trifft zu
no: trifft nicht zu
[doing]
sleep: Wartet bis {time}
computing: Rechnet seit {duration}
[unit]
degree: \u00A0°{of}
percent: \u00A0%
[arrange]
places: Welches Gerät wo ist
up: {name} nach oben
down: {name} nach unten
leave: {name} herausnehmen
add: Gerät zu {name} hinzufügen
new_rooms: Name eines neuen Raums
new_groups: Name einer neuen Gruppe
choose: {name} auswählen
join: Gewählte Geräte in eine Gruppe: {count}
move: Ausgewählte Geräte verschieben: {count}
[box]
adapters: Adapter
last_success: Letzte Antwort {time}
figures: Die Zentrale
events: Ereignisse
log: Protokoll
discovery: Geräte im Netz
page: Diese Seite
role: dein Schlüssel darf: {role}
forget: Schlüssel vergessen
[figure]
version: Version
uptime: Läuft seit
memory: Speicher
written: Auf die SD-Karte geschrieben
[role]
read: ansehen
write: ansehen und bedienen
admin: alles
automation: alles, für Programme
[key]
ask: Der Schlüssel dieses Zuhauses
missing: Hier findest du ihn: sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (Container); lares demo gibt ihn aus. Einen weiteren macht: sudo lares key create --label me --role admin
rejected: Die Zentrale nimmt diesen Schlüssel nicht an. Gib einen anderen ein.
secret: Schlüssel
use: Öffnen
label: Name eines neuen Schlüssels
role: Er darf
revoke: Sperren
made: Schlüssel für {name}
once: Nur jetzt zu sehen: mit einem Telefon scannen, um das Zuhause dort zu öffnen, oder den Text kopieren.
qr: QR-Code mit Adresse und Schlüssel
loopback: „{host}“ ist eine Adresse nur dieses Geräts: Der Code führt ein Telefon nirgendwohin. Lass die Zentrale im Netz lauschen, [api] bind_address = "0.0.0.0:3000", oder nutze einen Reverse-Proxy, und öffne diese Seite unter der Adresse der Box.
[pairing]
code: Kopplungscode, oder Text des QR-Codes
pair: Koppeln
scan: Scannen
hold: Halte den QR-Code vor die Kamera.
no_camera: Die Kamera lässt sich nicht nutzen ({reason}). Tippe den Code ein.
done: Gekoppelt: {names}
title: Kopplung
share: Teilen
shared: In der anderen App, binnen {minutes} Minuten: dies scannen oder den Code eingeben.
qr: Kopplungscode für die andere App
identify: Zeig dich
unpair: Entkoppeln
confirm: {names} entkoppeln? Das Gerät vergisst dieses Zuhause.
press: Für den Schlüssel: den Knopf am Gerät oder an der Bridge drücken, dann binnen 30 Sekunden „Koppeln“.
paste: Trage diese Zeile in config/default.toml unter [adapters.{name}] ein:
[hook]
label: Kennung eines neuen Hooks
what: Eine Adresse, die ein Telefon, ein Taster oder ein Skript aufruft; eine Automation mit dem Auslöser webhook hört darauf.
once: Nur jetzt zu sehen: Wer diese Adresse hat, kann den Hook aufrufen und sonst nichts.
unheard: Auf diesen Hook hört noch nichts.
qr: QR-Code mit der Adresse des Hooks
address: Adresse
[discovery]
what: Sucht drei Sekunden lang nach Geräten, die sich melden
search: Suchen
none: Nichts gefunden. Geräte in einem anderen VLAN hört die Zentrale nicht, und aus einem Container heraus auch nicht.
section: Abschnitt für {name}
[action]
on: Ein
off: Aus
toggle: Umschalten
set: gesetzt
increase: Erhöhen
decrease: Verringern
lock: Abschließen
unlock: Aufschließen
open: Öffnen
close: Schließen
stop: Stopp
play: Wiedergabe
next: Weiter
previous: Zurück
press: Drücken
return_to_base: Zur Station
clean_spot: Hier reinigen
start_mowing: Mähen
start: Starten
pause: Anhalten
dock: Zur Station
locate: Suchen
install: Installieren
[value]
short: Kurz
long: Lang
on: Ein
off: Aus
online: Verbunden
offline: Nicht verbunden
unavailable: Nicht verfüg­bar
unknown: Unbekannt
open: Offen
closed: Geschlossen
opening: Öffnet
closing: Schließt
stopped: Angehalten
jammed: Blockiert
locked: Abge­schlossen
unlocked: Aufge­schlossen
detected: Erkannt
clear: Ruhig
occupied: Belegt
unoccupied: Frei
heat: Heizen
cool: Kühlen
auto: Automatik
heat_cool: Heizen und kühlen
dry: Trocknen
fan_only: Nur Lüfter
idle: Bereit
heating: Heizt
cooling: Kühlt
playing: Läuft
paused: Pausiert
good: Gut
poor: Schlecht
running: Läuft
starting: Startet
degraded: Gestört
ok: Erledigt
error: Fehlgeschlagen
unsupported: Hier nicht möglich
skipped: Nicht ausgeführt
dropped: Verworfen
cancelled: Abgebrochen
timeout: Dauerte zu lange
disarmed: Unscharf
armed_home: Scharf, zuhause
armed_away: Scharf, außer Haus
armed_night: Scharf, nachts
armed_vacation: Scharf, im Urlaub
armed_custom_bypass: Teilweise scharf
arming: Wird scharf
disarming: Wird unscharf
pending: Wartet auf den Code
triggered: Alarm
cleaning: Reinigt
docked: An der Station
returning: Fährt zurück
mowing: Mäht
forward: Vorwärts
reverse: Rückwärts
none: Keine
[attribute]
white: Weiß
cold_white: Kaltweiß
warm_white: Warmweiß
flash: Blinken
power: Ein/Aus
brightness: Helligkeit
color_temperature: Lichtfarbe
color: Farbe
fan_speed: Saugkraft
percentage: Stufe
duration: Dauer in Sekunden
volume_level: Lautstärke
tone: Ton
oscillation: Schwenken
direction: Richtung
target_humidity: Sollfeuchte
mode: Betriebsart
fan_mode: Lüfter
swing_mode: Schwenken
color_mode: Farbmodus
effect: Effekt
transition: Übergang
illuminance: Licht
temperature: Temperatur
temperature_outdoor: Draußen
temperature_apparent: Gefühlt
humidity: Luftfeuchte
pressure: Luftdruck
co2: CO₂
air_quality: Luft
battery: Batterie
motion: Bewegung
contact: Kontakt
occupancy: Belegung
presence: Anwesenheit
smoke: Rauch
water_leak: Wasseraustritt
target_temperature: Soll
hvac_mode: Betriebsart
hvac_state: Zustand
preset_mode: Voreinstellung
power_consumption: Leistung
voltage: Spannung
current: Strom
energy_total: Energie
energy_today: Heute
energy_yesterday: Gestern
energy_month: Monat
volume: Lautstärke
muted: Stumm
media_source: Quelle
media_app: App
media_title: Titel
media_playback: Wiedergabe
lock: Schloss
door: Tür
garage_door: Garage
cover_position: Position
cover_tilt: Neigung
wind_speed: Wind
wind_direction: Wind aus
rainfall: Regen
weather_condition: Wetter
cloud_coverage: Wolken
state: Zustand
[settings]
devices: Geräte und Adapter
devices.what: Finden, hinzufügen, koppeln
rooms: Räume und Gruppen
rooms.what: Namen, und welches Gerät wo ist
keys: Schlüssel
keys.what: Zugang für Telefone, Menschen und Programme
hooks: Hooks
hooks.what: Adressen, die Automationen starten
backup: Sicherung
backup.what: Alles als eine Datei herunterladen
look: Aussehen und Sprache
look.what: In diesem Browser
about: Über die Zentrale
about.what: Version, Speicher und SD-Karte
diagnostics: Diagnose
diagnostics.what: Protokoll und laufende Ereignisse
add: Gerät hinzufügen
[look]
scheme: Farben
auto: Wie das Gerät
light: Hell
dark: Dunkel
language: Sprache
browser: Wie der Browser
hint: Beides merkt sich nur dieser Browser.
[summary]
lit_one: {name} an
lit_many: {count} Lichter an
indoors: {value} drinnen
open_one: {name} offen
open_many: {count} offen
unlocked_one: {name} nicht abgeschlossen
unlocked_many: {count} nicht abgeschlossen
locked_one: {name} abgeschlossen
locked_many: Alles abgeschlossen
away_one: {name} nicht erreichbar
away_many: {count} nicht erreichbar
low_one: {name}: Batterie {share}
low_many: {count} Batterien schwach
alarm_many: {count} Alarme
[state]
open: {share} offen
[first]
search: Mein Netz durchsuchen
add: Broker oder anderes Gerät verbinden
docs: Die ersten Schritte zeigt die Datei docs/first-evening.md.
[search]
close: Suche schließen
[sheet]
close: Schließen
more: Alles über dieses Gerät
today: Der letzte Tag
why: Warum ist das so?
[reading]
detected: Bewegung
clear: Keine Bewegung
occupied: Jemand da
unoccupied: Niemand da
[chart]
mean: Mittel
span: Tiefst- bis Höchstwert
[cause]
device_state_change: Ein Gerät ändert sich
weather_state: Das Wetter ändert sich
device_event: Ein Gerät meldet ein Ereignis
variable_change: Eine Variable ändert sich
timer: Ein Timer endet
webhook: Ein Hook wird aufgerufen
adapter_lifecycle: Ein Adapter startet oder stoppt
system_error: Etwas schlägt fehl
wall_clock: Zu ihrer Uhrzeit
cron: Zu ihrer Uhrzeit
date: Zu ihrer Uhrzeit
interval: In ihrem Abstand
sunrise: Bei Sonnenaufgang
sunset: Bei Sonnenuntergang
[editor]
try: Jetzt probieren
simulate: Die nächsten 24 Stunden
versions: Frühere Fassungen
saved: Gesichert und in Kraft.
saved_warned: Gesichert, mit Warnungen: {count}. Der Rand zeigt sie.
unsaved: Noch nicht gesichert.
other: Jemand anderes hat diese Datei geändert. Die Unterschiede zu deinem Text:
theirs: Den anderen Text nehmen
mine: Meinen Text sichern
line: Zeile {line}:
keys: Strg+S sichert, Strg+Leertaste ergänzt Namen, Strg+F sucht, F8 geht zum nächsten Fehler. Tab verlässt das Feld.
save_and_run: Sichern und ausführen
no_id: Die Datei nennt noch keine id.
with_commands: Mit ihren Befehlen
look: Vorausschauen
never: Nichts löst sie in dieser Zeit aus.
cut: Nur bis {time}: Der Rest würde zu lange dauern.
restore: Diesen Text nehmen
difference: Unterschiede
equal: Keine Unterschiede.
runs: Sie läuft
test: Testen
events: Ereignisse, eines je Zeile (18:00 hall:motion motion detected)
settings: Einstellungen, eine je Zeile (key = value)
recording: Aufzeichnung (Datei eines früheren Tests)
replay: Abspielen
record: Aufzeichnung sichern
[new]
title: Neu
recipes: Aus einem Rezept
gone: Es gibt kein Rezept {name}.
empty: Aus einer leeren Datei
empty_what: Du schreibst sie in Lua, mit Ergänzung und Prüfung.
automation: Automation
scene: Szene
adapter: Adapter-Art
adapter_name: Neue Art
automation_name: Neue Automation
scene_name: Neue Szene
name: Name
make: Anlegen
anyway: Trotzdem anlegen
no_device: {label}: Kein Gerät dieses Zuhauses zeigt das.
no_room: {label}: Leg zuerst unter Einstellungen einen Raum an.
no_group: {label}: Leg zuerst unter Einstellungen eine Gruppe an.
[duration]
second: Sekunden
minute: Minuten
hour: Stunden
[add]
title: Über die Adresse hinzufügen
kind: Art
base_url: Adresse (URL)
url: Adresse (URL)
host: Rechnername oder IP-Adresse
ip_address: IP-Adresse
port: Port
username: Benutzername (falls nötig)
password: Passwort (falls nötig)
section: Name des Abschnitts
rule: Erlaubt sind nur a-z, 0-9 und _.
make: Hinzufügen
this: Dieses Gerät hinzufügen
done: Hinzugefügt. Es startet jetzt.
other: Alle anderen Arten und Einträge: die Konfiguration bearbeiten.
confirm_remove: {name} aus der Konfiguration entfernen? Seine Geräte verschwinden; ihre Räume und Namen bleiben.
more: Weitere Einstellungen
test: Testen
found: Es antwortet: {names}
found_none: Es antwortet, zeigt aber noch kein Gerät.
trace: Anfragen und Antworten
edit: {name} ändern
kept: Unverändert
in_file: Ändere das in der Datei.
gone: Es gibt keinen Abschnitt {name}.
token: Token (falls nötig)
default: Wie üblich: {value}
saved: Gesichert. Es startet jetzt neu.
[kind]
mqtt: MQTT-Broker (Zigbee2MQTT, ESPHome, Tasmota)
hue: Philips-Hue-Bridge
tasmota_http: Tasmota über HTTP
elgato_lights: Elgato-Leuchte
roku_tv: Roku TV
matter: Matter-Server
fritzbox: FRITZ!Box (wer zuhause ist)
notify: Nachrichten
virtual: Virtuelle Geräte
[copy]
what: Kopieren: {name}
done: Kopiert: {name}
[alias]
rule: Erlaubt sind a-z, 0-9 und _; am Anfang steht ein Buchstabe.
offer: Gib ihm auch eine kurze Kennung: Automationen können sie statt der langen nutzen.
`;
