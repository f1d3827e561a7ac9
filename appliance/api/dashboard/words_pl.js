// Polish.

export const words = `
nav: Działy
yes: tak
no: nie
save: Zapisz
set: Ustaw
create: Utwórz
delete: Usuń
cancel: Anuluj
running: Teraz działa
done: Gotowe
dismiss: Ukryj
refresh: Wczytaj ponownie
rename: Zmień nazwę: {name}
saturation: Nasycenie
simulate: Symuluj
simulate.event: Zdarzenie
simulate.send: Wyślij
offline: Centrala jest nieosiągalna.
files: Pliki Lua
key.revoke.what: Unieważnij: {name}
scenes: Sceny
groups: Grupy
rooms: Pokoje
automations: Automatyzacje
outcome: Wykonano {done} z {all}
nothing: Jeszcze nic.
broken: Nie można tego pokazać.
delete.what: Usuń: {name}
offline.since: Centrala jest nieosiągalna od {time}.
confirm.others: {action}: także to, co nie jest światłem ({names})?
confirm.command: {action}: {name}?
confirm.delete: Usunąć: {name}?
confirm.revoke: Unieważnić klucz {name}? Kto go używa, od razu straci dostęp.
period.hour: Godzina
period.day: Dzień
period.week: Tydzień
period.month: Miesiąc
period.year: Rok
files.wrong: Błędy w plikach Lua: {count}; w tej postaci nie obowiązują:
backup.what: Stan, konfiguracja i pliki Lua, bez sekretów kluczy
backup.download: Pobierz
smoke.true: Dym
smoke.false: Brak dymu
water_leak.true: Woda
water_leak.false: Sucho
presence.true: Obecny
presence.false: Nieobecny
label.own: {name} (własne)
away: {state} od {time}
away.hint: Sprawdź, czy ma zasilanie i jest w zasięgu. Poniżej są ostatnie wartości.
code: Kod
code.ask: {name} wymaga kodu.
search: Szukaj urządzeń i pokoi
search.found: Znaleziono: {count}
search.none: Żadne urządzenie ani pokój tak się nie nazywa.
edit: Ulubione i kolejność
favourites: Ulubione
favourites.mark: Ulubione: {name}
hidden.mark: Ukryj: {name}
hidden.count: Ukryte: {count} (zob. „Ulubione i kolejność”)
move: Przesuń {name}: przeciągnij lub klawisze strzałek
fold: Zwiń: {name}
wall: Panel ścienny
wall.fill: Pełny ekran
room.gone: Nie ma takiego pokoju.
room.day: Ostatnia doba
timers: Minutniki
timer.due: kończy się {time}
variables: Zmienne
variable.value: Wartość: {name}
variable.new: Nazwa nowej zmiennej
summary: Dom teraz
[nav]
home: Dom
automations: Automaty­zacje
settings: Ustawienia
[error]
unreachable: Centrala nie odpowiada.
status: Centrala odpowiedziała błędem ({status}).
other_origin: Ta strona rozmawia tylko z własną centralą, nie z {api}.
no_page: Nie ma strony {address}. To jest dom.
device_unreachable: Urządzenie nie odpowiada: {sentence}
insufficient_permissions: Twój klucz na to nie pozwala.
store_unavailable: Karta urządzenia nie przyjmuje teraz zmian: {sentence}
adapter_failed: Adapter urządzenia ma błąd: {sentence}
body_too_large: To za duże: {sentence}
busy: Zbyt wiele poleceń czeka na to urządzenie; tego nie wysłano. Spróbuj ponownie.
cancelled: Zakończono to z zewnątrz.
device_refused: Urządzenie odmówiło: {sentence}
dropped_by_mode: To już działa i nie dopuszcza kolejnego uruchomienia.
internal: Centrala ma błąd; jej dziennik go podaje.
invalid_request: Centrala tego nie rozumie: {sentence}
invalid_value: Tak się nie da: {sentence}
not_found: Tego już nie ma: {sentence}
not_ready: Centrala jeszcze się uruchamia: {sentence}
rate_limited: Zbyt wiele zapytań naraz. Spróbuj za chwilę.
script_failed: Plik Lua zawiódł: {sentence}
stopping: Centrala się zatrzymuje; nie wiadomo, czy polecenie wykonano.
unsupported: To urządzenie tego nie potrafi: {sentence}
[home]
devices: Urządzenia
unassigned: Bez pokoju
empty: Nie ma jeszcze urządzeń.
members: Urządzenia: {count}
on: Teraz włączone
all: Wszystkie ({count})
[device]
events: Zdarzenia
gone: Nie ma takiego urządzenia.
facts: O tym urządzeniu
history: Wartości i historia
no_history: W tym czasie nic nie zapisano.
compare: Porównaj
by_day: {attribute} według dni
by_month: {attribute} według miesięcy
hours: Starsze wartości: średnia i zakres na godzinę.
picture: {attribute}, wartości: {count}
no_picture: Nie przyszedł jeszcze żaden obraz.
still: Obraz: {name}
table: Jako tabela
uses: Używane przez
unused: Nie wymienia go żadna automatyzacja ani scena i od startu nikt nim nie sterował.
lua: Polecenia w Lua
[fact]
manufacturer: Producent
model: Model
firmware: Oprogramowanie
serial: Numer seryjny
area: Strefa
parent: Część
room: Pokój
updated: Ostatnia zmiana
seen: Ostatnio widziane
id: Identyfikator
alias: Krótki id
[source]
device: ręcznie
room: z pokojem
group: z grupą
scene: scena
automation: automatyzacja
[automation]
no_run: brak znanego uruchomienia
gone: Nie ma takiej automatyzacji.
why: Kiedy działa
next: Następnym razem
last: Ostatnie uruchomienie
off: wyłączona
fill_in: Wyłączona: wpisz nazwy na początku jej pliku, potem ją włącz.
other_zone: Godziny są w strefie przeglądarki; automatyzacje używają {zone}.
run: Uruchom teraz
history: Co się wydarzyło
waits: gdy coś się wydarzy
ran: ostatnio {time}{took}
due: następny raz {time}
warned: Zrobione, z ostrzeżeniami
source: Edytuj plik
[reason]
condition: Nie wykonano: warunek {detail}
cooldown: Nie wykonano, za wcześnie po ostatnim razie: {detail}
duplicate: Nie wykonano, to samo właśnie się wydarzyło: {detail}
mode: Nie wykonano obok innego uruchomienia: {detail}
disabled: Nie wykonano, jest wyłączona.
brake: Wstrzymana, zbyt często uruchamiała samą siebie: {detail}
failed: Niepowodzenie: {detail}
was: było {value}
[step]
sleep: Odczekano {duration}
wait: Czekano na {what}
[trigger]
title: Uruchamia się, gdy
change: {what} zmienia się
event: {who}: zdarzenie {event}
any_event: {who}: dowolne zdarzenie
at: O {time}
cron: Według wyrażenia {expression} ({zone})
interval: Co {duration}
variable: Zmienna {name}
timer: Minutnik {name} kończy się
webhook: Ktoś wywołuje hook {hook}
adapter: Adapter {name} uruchamia się
any_adapter: Jakiś adapter uruchamia się
any_device: Dowolne urządzenie
fails: Coś się nie udaje
room: Pokój {name}
group: Grupa {name}
lasting: {what} przez {duration}
now: teraz {value}
[condition]
title: Tylko jeśli
after_sunrise: Po wschodzie słońca
after_sunset: Po zachodzie słońca
before_sunrise: Przed wschodem słońca
before_sunset: Przed zachodem słońca
least: Co najmniej {count} z urządzeń
most: Co najwyżej {count} z urządzeń
all: Wszystkie poniższe warunki
any: Co najmniej jeden z poniższych warunków
none: Żaden z poniższych warunków
yes: spełnione
no: niespełnione
[doing]
sleep: Czeka do {time}
computing: Oblicza od {duration}
[unit]
degree: °{of}
percent: %
[arrange]
places: Które urządzenie jest gdzie
up: {name} wyżej
down: {name} niżej
leave: Wyjmij: {name}
add: Dodaj urządzenie do: {name}
new_rooms: Nazwa nowego pokoju
new_groups: Nazwa nowej grupy
choose: Wybierz {name}
join: Dodaj wybrane urządzenia do grupy: {count}
move: Przenieś wybrane urządzenia: {count}
[box]
adapters: Adaptery
last_success: Ostatnia odpowiedź {time}
figures: Centrala
events: Zdarzenia
log: Dziennik
discovery: Urządzenia w sieci
page: Ta strona
role: twój klucz pozwala: {role}
forget: Zapomnij klucz
[figure]
version: Wersja
uptime: Działa od
memory: Pamięć
written: Zapisane na karcie SD
[role]
read: oglądać
write: oglądać i sterować
admin: wszystko
automation: wszystko, dla programów
[key]
ask: Klucz tego domu
missing: Gdzie jest: sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (kontener); lares demo go wypisuje. Nowy: sudo lares key create --label me --role admin
rejected: Centrala nie przyjmuje tego klucza. Wpisz inny.
secret: Klucz
use: Otwórz
label: Nazwa nowego klucza
role: Pozwala
revoke: Unieważnij
made: Klucz: {name}
once: Widoczny tylko teraz: zeskanuj telefonem, aby otworzyć tam dom, albo skopiuj tekst.
qr: Kod QR z adresem i kluczem
loopback: „{host}” to adres tylko tego urządzenia: kod nigdzie nie zaprowadzi telefonu. Pozwól centrali słuchać w sieci, [api] bind_address = "0.0.0.0:3000", albo użyj reverse proxy i otwórz tę stronę pod adresem urządzenia.
[pairing]
code: Kod parowania albo tekst kodu QR
pair: Sparuj
scan: Skanuj
hold: Pokaż kod QR kamerze.
no_camera: Nie można użyć kamery ({reason}). Wpisz kod.
done: Sparowano: {names}
title: Parowanie
share: Udostępnij
shared: W drugiej aplikacji, w ciągu {minutes} minut: zeskanuj to albo wpisz kod.
qr: Kod parowania dla drugiej aplikacji
identify: Pokaż się
unpair: Usuń parowanie
confirm: Usunąć parowanie: {names}? Urządzenie zapomni ten dom.
press: Po klucz: naciśnij przycisk na urządzeniu lub mostku, a potem w ciągu 30 sekund „Sparuj”.
paste: Dodaj tę linię do [adapters.{name}] w config/default.toml:
[hook]
label: Id nowego hooka
what: Adres, który wywołuje telefon, przycisk lub skrypt; słyszy go automatyzacja z wyzwalaczem webhook.
once: Pokazane tylko teraz: kto ma ten adres, może wywołać hook i nic więcej.
unheard: Nic jeszcze nie słucha tego hooka.
qr: Kod QR z adresem hooka
address: Adres
[discovery]
what: Przez trzy sekundy szuka urządzeń, które się ogłaszają
search: Szukaj
none: Nic nie znaleziono. Centrala nie słyszy urządzeń w innej sieci VLAN ani z kontenera.
section: Sekcja dla {name}
[action]
on: Włącz
off: Wyłącz
toggle: Przełącz
set: ustawione
increase: Zwiększ
decrease: Zmniejsz
lock: Zamknij na klucz
unlock: Otwórz zamek
open: Otwórz
close: Zamknij
stop: Stop
play: Odtwarzaj
next: Następny
previous: Poprzedni
press: Naciśnij
return_to_base: Do stacji
clean_spot: Czyść tutaj
start_mowing: Koś
start: Start
pause: Wstrzymaj
dock: Do stacji
locate: Znajdź
install: Zainstaluj
[value]
short: Krótkie
long: Długie
on: Włączone
off: Wyłączone
online: Połączone
offline: Niepołączone
unavailable: Niedo­stępne
unknown: Nieznane
open: Otwarte
closed: Zamknięte
opening: Otwiera się
closing: Zamyka się
stopped: Zatrzymane
jammed: Zablokowane
locked: Zamknięte na klucz
unlocked: Otwarty zamek
detected: Wykryto
clear: Nie wykryto
occupied: Zajęte
unoccupied: Wolne
heat: Grzanie
cool: Chłodzenie
auto: Automatycznie
heat_cool: Grzanie i chłodzenie
dry: Osuszanie
fan_only: Tylko wentylator
idle: Bezczynne
heating: Grzeje
cooling: Chłodzi
playing: Odtwarza
paused: Wstrzymane
good: Dobre
poor: Złe
running: Działa
starting: Uruchamia się
degraded: Zakłócone
ok: Wykonano
error: Błąd
unsupported: Tutaj niemożliwe
skipped: Nie wykonano
dropped: Odrzucono
cancelled: Anulowano
timeout: Trwało za długo
disarmed: Rozbrojony
armed_home: Uzbrojony, w domu
armed_away: Uzbrojony, poza domem
armed_night: Uzbrojony, noc
armed_vacation: Uzbrojony, urlop
armed_custom_bypass: Uzbrojony częściowo
arming: Uzbraja się
disarming: Rozbraja się
pending: Czeka na kod
triggered: Alarm
cleaning: Sprząta
docked: Na stacji
returning: Wraca
mowing: Kosi
forward: Do przodu
reverse: Do tyłu
none: Brak
[attribute]
white: Biel
cold_white: Zimna biel
warm_white: Ciepła biel
flash: Miganie
power: Zasilanie
brightness: Jasność
color_temperature: Ciepło barwy
color: Kolor
fan_speed: Siła ssania
percentage: Prędkość
duration: Czas w sekundach
volume_level: Głośność
tone: Dźwięk
oscillation: Obrót
direction: Kierunek
target_humidity: Żądana wilgotność
mode: Tryb
fan_mode: Wentylator
swing_mode: Ruch żaluzji
color_mode: Tryb koloru
effect: Efekt
transition: Przejście
illuminance: Światło
temperature: Temperatura
temperature_outdoor: Na zewnątrz
temperature_apparent: Odczuwalna
humidity: Wilgotność
pressure: Ciśnienie
co2: CO₂
air_quality: Powietrze
battery: Bateria
motion: Ruch
contact: Czujnik otwarcia
occupancy: Zajętość
presence: Obecność
smoke: Dym
water_leak: Wyciek wody
target_temperature: Żądana
hvac_mode: Tryb
hvac_state: Stan
preset_mode: Ustawienie
power_consumption: Moc
voltage: Napięcie
current: Prąd
energy_total: Energia
energy_today: Dzisiaj
energy_yesterday: Wczoraj
energy_month: Miesiąc
volume: Głośność
muted: Wyciszone
media_source: Źródło
media_app: Aplikacja
media_title: Tytuł
media_playback: Odtwarzanie
lock: Zamek
door: Drzwi
garage_door: Garaż
cover_position: Położenie
cover_tilt: Pochylenie
wind_speed: Wiatr
wind_direction: Wiatr z
rainfall: Deszcz
weather_condition: Pogoda
cloud_coverage: Chmury
state: Stan
[settings]
devices: Urządzenia i adaptery
devices.what: Znajdź, dodaj, sparuj
rooms: Pokoje i grupy
rooms.what: Nazwy i miejsca urządzeń
keys: Klucze
keys.what: Dostęp dla telefonów, ludzi i programów
hooks: Hooki
hooks.what: Adresy, które uruchamiają automatyzacje
backup: Kopia zapasowa
backup.what: Pobierz wszystko jako jeden plik
look: Wygląd i język
look.what: Tej przeglądarki
about: O centrali
about.what: Wersja, pamięć i karta SD
diagnostics: Diagnostyka
diagnostics.what: Dziennik i bieżące zdarzenia
add: Dodaj urządzenie
[look]
scheme: Kolory
auto: Jak urządzenie
light: Jasne
dark: Ciemne
language: Język
browser: Jak przeglądarka
hint: Oba są pamiętane tylko w tej przeglądarce.
[summary]
lit_one: {name}: świeci
lit_many: Włączone światła: {count}
indoors: {value} w domu
open_one: {name}: otwarte
open_many: Otwarte: {count}
unlocked_one: {name}: niezamknięte
unlocked_many: Niezamknięte: {count}
locked_one: {name}: zamknięte
locked_many: Wszystko zamknięte
away_one: {name}: nieosiągalne
away_many: Nieosiągalne: {count}
low_one: {name}: bateria {share}
low_many: Słabe baterie: {count}
alarm_many: Alarmy: {count}
[state]
open: otwarte {share}
[first]
search: Przeszukaj moją sieć
add: Połącz z brokerem lub innym urządzeniem
docs: Pierwsze kroki opisuje plik docs/first-evening.md.
[search]
close: Zamknij wyszukiwanie
[sheet]
close: Zamknij
more: Wszystko o tym urządzeniu
today: Ostatnia doba
why: Dlaczego tak jest?
[reading]
detected: Ruch
clear: Brak ruchu
occupied: Ktoś jest
unoccupied: Nikogo
[chart]
mean: Średnia
span: Od najniższej do najwyższej
[cause]
device_state_change: Urządzenie się zmienia
weather_state: Pogoda się zmienia
device_event: Urządzenie zgłasza zdarzenie
variable_change: Zmienna się zmienia
timer: Minutnik się kończy
webhook: Wywołano hook
adapter_lifecycle: Adapter startuje lub się zatrzymuje
system_error: Coś się nie udaje
wall_clock: O swojej porze
cron: O swojej porze
date: O swojej porze
interval: W swoim odstępie
sunrise: O wschodzie słońca
sunset: O zachodzie słońca
[editor]
try: Wypróbuj
simulate: Następne 24 godziny
versions: Wcześniejsze wersje
saved: Zapisano, już działa.
saved_warned: Zapisano, ostrzeżenia: {count}. Pokazuje je margines.
unsaved: Jeszcze nie zapisano.
other: Ktoś inny zmienił ten plik. Różnice względem twojego tekstu:
theirs: Weź tamten tekst
mine: Zapisz mój tekst
line: Wiersz {line}:
keys: Ctrl+S zapisuje, Ctrl+Spacja uzupełnia nazwy, Ctrl+F szuka, F8 przechodzi do następnego błędu. Tab opuszcza pole.
save_and_run: Zapisz i uruchom
no_id: Plik nie podaje jeszcze id.
with_commands: Z poleceniami
look: Sprawdź
never: Nic jej w tym czasie nie uruchamia.
cut: Tylko do {time}: reszta trwałaby za długo.
restore: Weź ten tekst
difference: Różnice
equal: Brak różnic.
runs: Uruchamia się
test: Sprawdź
events: Zdarzenia, jedno w wierszu (18:00 hall:motion motion detected)
settings: Ustawienia, jedno w wierszu (key = value)
recording: Nagranie (plik z wcześniejszej próby)
replay: Odtwórz
record: Zapisz nagranie
[new]
title: Nowe
recipes: Z przepisu
gone: Nie ma przepisu {name}.
empty: Z pustego pliku
empty_what: Piszesz w Lua, z uzupełnianiem i sprawdzaniem.
automation: Automatyzacja
scene: Scena
adapter: Rodzaj adaptera
adapter_name: Nowy rodzaj
automation_name: Nowa automatyzacja
scene_name: Nowa scena
name: Nazwa
make: Utwórz
anyway: Utwórz mimo to
no_device: {label}: żadne urządzenie w tym domu tego nie pokazuje.
no_room: {label}: najpierw utwórz pokój w Ustawieniach.
no_group: {label}: najpierw utwórz grupę w Ustawieniach.
[duration]
second: sekundy
minute: minuty
hour: godziny
[add]
title: Dodaj po adresie
kind: Rodzaj
base_url: Adres (URL)
url: Adres (URL)
host: Nazwa lub adres IP
ip_address: Adres IP
port: Port
username: Użytkownik (jeśli jest)
password: Hasło (jeśli jest)
section: Nazwa sekcji
rule: Użyj tylko a-z, 0-9 i _.
make: Dodaj
this: Dodaj to urządzenie
done: Dodano. Teraz się uruchamia.
other: Inne rodzaje i klucze: edytuj konfigurację.
confirm_remove: Usunąć {name} z konfiguracji? Urządzenia znikną; ich pokoje i nazwy zostaną.
more: Więcej ustawień
test: Sprawdź
found: Odpowiada: {names}
found_none: Odpowiada, ale nie pokazuje jeszcze urządzeń.
trace: Zapytania i odpowiedzi
edit: Zmień {name}
kept: Bez zmian
in_file: Zmień to w pliku.
gone: Nie ma sekcji {name}.
token: Token (jeśli jest)
default: Zwykle: {value}
saved: Zapisano. Teraz uruchamia się ponownie.
[kind]
mqtt: Broker MQTT (Zigbee2MQTT, ESPHome, Tasmota)
hue: Mostek Philips Hue
tasmota_http: Tasmota przez HTTP
elgato_lights: Lampa Elgato
roku_tv: Roku TV
matter: Serwer Matter
fritzbox: FRITZ!Box (kto jest w domu)
notify: Wiadomości
virtual: Urządzenia wirtualne
[copy]
what: Kopiuj: {name}
done: Skopiowano: {name}
[alias]
rule: Użyj a-z, 0-9 i _, i zacznij od litery.
offer: Nadaj też krótki id: automatyzacje mogą go używać zamiast długiego.
`;
