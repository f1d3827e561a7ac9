// Italian.

export const words = `
nav: Sezioni
yes: sì
no: no
save: Salva
set: Imposta
create: Crea
delete: Elimina
cancel: Annulla
running: In corso
done: Fatto
dismiss: Nascondi
refresh: Ricarica
rename: Rinomina {name}
saturation: Saturazione
simulate: Simula
simulate.event: Evento
simulate.send: Invia
offline: La centrale non è raggiungibile.
files: File Lua
key.revoke.what: Revoca {name}
scenes: Scene
groups: Gruppi
rooms: Stanze
automations: Automazioni
outcome: Eseguiti: {done} di {all}
nothing: Ancora niente.
broken: Non si può mostrare.
delete.what: Elimina {name}
offline.since: La centrale non è raggiungibile da {time}.
confirm.others: {action}: anche ciò che non è luce ({names})?
confirm.command: {action}: {name}?
confirm.delete: Eliminare {name}?
confirm.revoke: Revocare la chiave {name}? Chi la usa resta subito fuori.
period.hour: Ora
period.day: Giorno
period.week: Settimana
period.month: Mese
period.year: Anno
files.wrong: Errori in file Lua: {count}. Così questi file non sono in vigore:
backup.what: Stato, configurazione e file Lua, senza i segreti delle chiavi
backup.download: Scarica
smoke.true: Fumo
smoke.false: Niente fumo
water_leak.true: Acqua
water_leak.false: Asciutto
presence.true: Presente
presence.false: Assente
label.own: {name} (proprio)
away: {state} da {time}
away.hint: Controlla che abbia corrente e sia a portata. Sotto c’è ciò che ha mostrato per ultimo.
code: Codice
code.ask: {name} chiede un codice.
search: Cerca dispositivi e stanze
search.found: Trovati: {count}
search.none: Nessun dispositivo o stanza ha questo nome.
edit: Preferiti e ordine
favourites: Preferiti
favourites.mark: Preferito: {name}
hidden.mark: Nascondi {name}
hidden.count: Nascosti: {count} (vedi «Preferiti e ordine»)
move: Sposta {name}: trascina o tasti freccia
fold: Comprimi {name}
wall: Pannello a parete
wall.fill: Schermo intero
room.gone: Questa stanza non c’è.
room.day: L’ultimo giorno
timers: Timer
timer.due: finisce {time}
variables: Variabili
variable.value: Valore di {name}
variable.new: Nome di una nuova variabile
summary: La casa adesso
[nav]
home: Casa
automations: Automa­zioni
settings: Imposta­zioni
[error]
unreachable: La centrale non risponde.
status: La centrale ha risposto con un errore ({status}).
other_origin: Questa pagina parla solo con la propria centrale, non con {api}.
no_page: Non c’è una pagina {address}. Questa è la casa.
device_unreachable: Il dispositivo non risponde: {sentence}
insufficient_permissions: La tua chiave non lo permette.
store_unavailable: La scheda del box ora non accetta modifiche: {sentence}
adapter_failed: L’adattatore del dispositivo ha un guasto: {sentence}
body_too_large: È troppo grande: {sentence}
busy: Troppi comandi attendono questo dispositivo; questo non è stato inviato. Riprova.
cancelled: È stato terminato dall’esterno.
device_refused: Il dispositivo ha rifiutato: {sentence}
dropped_by_mode: È già in corso e non ammette un’altra esecuzione.
internal: La centrale ha un guasto; il suo registro lo nomina.
invalid_request: La centrale non capisce: {sentence}
invalid_value: Così non è possibile: {sentence}
not_found: Non esiste più: {sentence}
not_ready: La centrale si sta avviando: {sentence}
rate_limited: Troppe richieste in una volta. Riprova tra un momento.
script_failed: Un file Lua non è riuscito: {sentence}
stopping: La centrale si sta fermando; non si sa se il comando sia stato eseguito.
unsupported: Questo dispositivo non può farlo: {sentence}
[home]
devices: Dispositivi
unassigned: Senza stanza
empty: Ancora nessun dispositivo.
members: Dispositivi: {count}
on: Acceso ora
all: Tutti ({count})
[device]
events: Eventi
gone: Questo dispositivo non c’è.
facts: Su questo dispositivo
history: Valori e storico
no_history: In questo periodo non è stato registrato nulla.
compare: Confronta
by_day: {attribute} al giorno
by_month: {attribute} al mese
hours: Più vecchio di quanto la centrale ricorda: ore con media, minimo e massimo.
picture: {attribute}, valori: {count}
no_picture: Non è ancora arrivata alcuna immagine.
still: Immagine di {name}
table: Come tabella
uses: Usato da
unused: Nessuna automazione o scena lo nomina, e nessuno lo ha comandato dall’avvio.
lua: Comandi in Lua
[fact]
manufacturer: Produttore
model: Modello
firmware: Firmware
serial: Numero di serie
area: Area
parent: Parte di
room: Stanza
updated: Ultima modifica
seen: Visto l’ultima volta
id: Identificativo
alias: Id breve
[source]
device: a mano
room: con la stanza
group: con il gruppo
scene: scena
automation: automazione
[automation]
no_run: nessuna esecuzione nota
gone: Questa automazione non c’è.
why: Quando si esegue
next: La prossima volta
last: Ultima esecuzione
off: disattivata
fill_in: Disattivata: scrivi i nomi in cima al suo file, poi attivala.
other_zone: Le ore sono quelle del browser; le automazioni usano {zone}.
run: Esegui ora
history: Che cosa è successo
waits: quando succede qualcosa
ran: ultima volta {time}{took}
due: prossima volta {time}
warned: Fatto, con avvisi
source: Modificare il suo file
[reason]
condition: Non eseguita: condizione {detail}
cooldown: Non eseguita, troppo presto dopo l’ultima volta: {detail}
duplicate: Non eseguita, era appena successo lo stesso: {detail}
mode: Non eseguita accanto a un’altra: {detail}
disabled: Non eseguita, è disattivata.
brake: Sospesa, si è attivata da sola troppo spesso: {detail}
failed: Fallita: {detail}
was: era {value}
[step]
sleep: Ha atteso {duration}
wait: Ha atteso {what}
[trigger]
title: Si avvia quando
change: {what} cambia
event: {who}: evento {event}
any_event: {who}: qualsiasi evento
at: Alle {time}
cron: Secondo l’espressione {expression} ({zone})
interval: Ogni {duration}
variable: Variabile {name}
timer: Il timer {name} finisce
webhook: Viene chiamato l’hook {hook}
adapter: L’adattatore {name} si avvia
any_adapter: Un adattatore si avvia
any_device: Qualsiasi dispositivo
fails: Qualcosa fallisce
room: Stanza {name}
group: Gruppo {name}
lasting: {what} per {duration}
now: ora {value}
[condition]
title: Solo se
after_sunrise: Dopo l’alba
after_sunset: Dopo il tramonto
before_sunrise: Prima dell’alba
before_sunset: Prima del tramonto
least: Almeno {count} dei dispositivi
most: Al massimo {count} dei dispositivi
all: Tutte queste
any: Almeno una di queste
none: Nessuna di queste
yes: vero
no: falso
[doing]
sleep: Aspetta fino alle {time}
computing: Calcola da {duration}
[unit]
degree: \u00A0°{of}
percent: %
[arrange]
places: Quale dispositivo è dove
up: Sposta {name} in su
down: Sposta {name} in giù
leave: Togli {name}
add: Aggiungi un dispositivo a {name}
new_rooms: Nome di una nuova stanza
new_groups: Nome di un nuovo gruppo
choose: Scegliere {name}
join: Aggiungi i dispositivi scelti a un gruppo: {count}
move: Spostare i dispositivi scelti: {count}
[box]
adapters: Adattatori
last_success: Ultima risposta {time}
figures: La centrale
events: Eventi
log: Registro
discovery: Dispositivi nella rete
page: Questa pagina
role: la tua chiave può: {role}
forget: Dimentica la chiave
[figure]
version: Versione
uptime: In funzione da
memory: Memoria
written: Scritto sulla scheda SD
[role]
read: vedere
write: vedere e comandare
admin: tutto
automation: tutto, per programmi
[key]
ask: La chiave di questa casa
missing: Dove si trova: sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (container); lares demo la mostra. Un’altra: sudo lares key create --label me --role admin
rejected: La centrale non accetta questa chiave. Inseriscine un’altra.
secret: Chiave
use: Apri
label: Nome di una nuova chiave
role: Può
revoke: Revoca
made: Chiave per {name}
once: Mostrato solo ora: scansiona con un telefono per aprirvi la casa, o copia il testo.
qr: Codice QR con indirizzo e chiave
loopback: «{host}» è un indirizzo solo di questo apparecchio: il codice non porta un telefono da nessuna parte. Fai ascoltare la centrale nella tua rete, [api] bind_address = "0.0.0.0:3000", o usa un proxy inverso, e apri questa pagina all’indirizzo del box.
[pairing]
code: Codice di abbinamento, o testo del codice QR
pair: Abbina
scan: Scansiona
hold: Metti il codice QR davanti alla fotocamera.
no_camera: La fotocamera non si può usare ({reason}). Scrivi il codice.
done: Abbinato: {names}
title: Abbinamento
share: Condividi
shared: Nell’altra app, entro {minutes} minuti: scansiona questo o inserisci il codice.
qr: Codice di abbinamento per l’altra app
identify: Identifica
unpair: Dissocia
confirm: Dissociare {names}? Il dispositivo dimentica questa casa.
press: Per la chiave: premi il pulsante del dispositivo o del bridge, poi «Abbina» entro 30 secondi.
paste: Aggiungi questa riga a [adapters.{name}] in config/default.toml:
[hook]
label: Id di un nuovo hook
what: Un indirizzo chiamato da un telefono, un pulsante o uno script; lo sente un’automazione con il trigger webhook.
once: Mostrato solo ora: chi ha questo indirizzo può chiamare l’hook e nient’altro.
unheard: Nessuno ascolta ancora questo hook.
qr: Codice QR con l’indirizzo dell’hook
address: Indirizzo
[discovery]
what: Cerca per tre secondi i dispositivi che si annunciano
search: Cerca
none: Non è stato trovato nulla. La centrale non sente i dispositivi di un’altra VLAN, né da un container.
section: Sezione per {name}
[action]
on: Accendi
off: Spegni
toggle: Inverti
set: impostato
increase: Aumenta
decrease: Riduci
lock: Chiudi a chiave
unlock: Apri la serratura
open: Apri
close: Chiudi
stop: Ferma
play: Riproduci
next: Avanti
previous: Indietro
press: Premi
return_to_base: Alla base
clean_spot: Pulisci qui
start_mowing: Taglia l’erba
start: Avvia
pause: Pausa
dock: Alla base
locate: Trova
install: Installa
[value]
short: Breve
long: Lungo
on: Acceso
off: Spento
online: Connesso
offline: Non connesso
unavailable: Non dispo­nibile
unknown: Sconosciuto
open: Aperto
closed: Chiuso
opening: Si apre
closing: Si chiude
stopped: Fermo
jammed: Inceppato
locked: Chiuso a chiave
unlocked: Non chiuso a chiave
detected: Rilevato
clear: Niente
occupied: Occupato
unoccupied: Libero
heat: Riscalda
cool: Raffredda
auto: Automatico
heat_cool: Riscalda e raffredda
dry: Asciuga
fan_only: Solo ventola
idle: In attesa
heating: Riscalda
cooling: Raffredda
playing: In riproduzione
paused: In pausa
good: Buono
poor: Scarso
running: In funzione
starting: Si avvia
degraded: Con problemi
ok: Fatto
error: Fallito
unsupported: Qui non è possibile
skipped: Non eseguito
dropped: Scartato
cancelled: Annullato
timeout: Durato troppo
disarmed: Disinserito
armed_home: Inserito, in casa
armed_away: Inserito, fuori casa
armed_night: Inserito, notte
armed_vacation: Inserito, vacanza
armed_custom_bypass: Inserito in parte
arming: Si inserisce
disarming: Si disinserisce
pending: Attende il codice
triggered: Allarme
cleaning: Pulisce
docked: Alla base
returning: Ritorna
mowing: Taglia l’erba
forward: Avanti
reverse: Indietro
none: Nessuno
[attribute]
white: Bianco
cold_white: Bianco freddo
warm_white: Bianco caldo
flash: Lampeggio
power: Accensione
brightness: Luminosità
color_temperature: Calore
color: Colore
fan_speed: Aspirazione
percentage: Velocità
duration: Durata in secondi
volume_level: Volume
tone: Suono
oscillation: Oscillazione
direction: Direzione
target_humidity: Umidità voluta
mode: Modo
fan_mode: Ventola
swing_mode: Oscillazione
color_mode: Modo colore
effect: Effetto
transition: Transizione
illuminance: Luce
temperature: Temperatura
temperature_outdoor: Fuori
temperature_apparent: Percepita
humidity: Umidità
pressure: Pressione
co2: CO₂
air_quality: Aria
battery: Batteria
motion: Movimento
contact: Contatto
occupancy: Occupazione
presence: Presenza
smoke: Fumo
water_leak: Perdita d’acqua
target_temperature: Desiderata
hvac_mode: Modo
hvac_state: Stato
preset_mode: Preimpostazione
power_consumption: Potenza
voltage: Tensione
current: Corrente
energy_total: Energia
energy_today: Oggi
energy_yesterday: Ieri
energy_month: Mese
volume: Volume
muted: Muto
media_source: Sorgente
media_app: App
media_title: Titolo
media_playback: Riproduzione
lock: Serratura
door: Porta
garage_door: Garage
cover_position: Posizione
cover_tilt: Inclinazione
wind_speed: Vento
wind_direction: Vento da
rainfall: Pioggia
weather_condition: Meteo
cloud_coverage: Nuvole
state: Stato
[settings]
devices: Dispositivi e adattatori
devices.what: Trovare, aggiungere, associare
rooms: Stanze e gruppi
rooms.what: Nomi, e dove si trova ogni dispositivo
keys: Chiavi
keys.what: Accesso per telefoni, persone e programmi
hooks: Hook
hooks.what: Indirizzi che avviano automazioni
backup: Backup
backup.what: Scaricare tutto in un file
look: Aspetto e lingua
look.what: Di questo browser
about: Informazioni
about.what: Versione, memoria e scheda SD
diagnostics: Diagnostica
diagnostics.what: Registro ed eventi in diretta
add: Aggiungere un dispositivo
[look]
scheme: Colori
auto: Come il dispositivo
light: Chiaro
dark: Scuro
language: Lingua
browser: Come il browser
hint: Entrambi restano solo in questo browser.
[summary]
lit_one: {name}: accesa
lit_many: {count} luci accese
indoors: {value} dentro
open_one: {name}: aperto
open_many: {count} aperti
unlocked_one: {name}: sbloccato
unlocked_many: {count} sbloccati
locked_one: {name}: chiuso a chiave
locked_many: Tutto chiuso a chiave
away_one: {name}: irraggiungibile
away_many: {count} irraggiungibili
low_one: {name}: batteria {share}
low_many: {count} batterie scariche
alarm_many: {count} allarmi
[state]
open: {share} aperto
[first]
search: Cercare nella mia rete
add: Collegare un broker o un altro dispositivo
docs: Il file docs/first-evening.md mostra i primi passi.
[search]
close: Chiudere la ricerca
[sheet]
close: Chiudere
more: Tutto su questo dispositivo
today: L’ultimo giorno
why: Perché è così?
[reading]
detected: Movimento
clear: Nessun movimento
occupied: Occupato
unoccupied: Nessuno
[chart]
mean: Media
span: Da minimo a massimo
[cause]
device_state_change: Un dispositivo cambia
weather_state: Il tempo cambia
device_event: Un dispositivo segnala un evento
variable_change: Una variabile cambia
timer: Un timer finisce
webhook: Viene chiamato un hook
adapter_lifecycle: Un adattatore si avvia o si ferma
system_error: Qualcosa fallisce
wall_clock: Alla sua ora
cron: Alla sua ora
date: Alla sua ora
interval: Al suo intervallo
sunrise: All’alba
sunset: Al tramonto
[editor]
try: Provare ora
simulate: Prossime 24 ore
versions: Versioni precedenti
saved: Salvato e in vigore.
saved_warned: Salvato, con avvisi: {count}. Il margine li mostra.
unsaved: Non ancora salvato.
other: Qualcun altro ha modificato questo file. Le differenze dal tuo testo:
theirs: Prendere l’altro testo
mine: Salvare il mio testo
line: Riga {line}:
keys: Ctrl+S salva, Ctrl+Spazio completa i nomi, Ctrl+F cerca, F8 va al prossimo errore. Tab lascia il campo.
save_and_run: Salvare ed eseguire
no_id: Il file non indica ancora un id.
with_commands: Con i suoi comandi
look: Guardare avanti
never: Niente la avvia in questo tempo.
cut: Solo fino a {time}: il resto richiederebbe troppo.
restore: Prendere questo testo
difference: Differenze
equal: Nessuna differenza.
runs: Si esegue
test: Prova
events: Eventi, uno per riga (18:00 hall:motion motion detected)
settings: Impostazioni, una per riga (key = value)
recording: Registrazione (file di una prova precedente)
replay: Riproduci
record: Salva la registrazione
[new]
title: Nuovo
recipes: Da una ricetta
gone: La ricetta {name} non c’è.
empty: Da un file vuoto
empty_what: La scrivi in Lua, con completamento e controlli.
automation: Automazione
scene: Scena
adapter: Tipo di adattatore
adapter_name: Nuovo tipo
automation_name: Nuova automazione
scene_name: Nuova scena
name: Nome
make: Creare
anyway: Creare comunque
no_device: {label}: nessun dispositivo di questa casa lo mostra.
no_room: {label}: crea prima una stanza in Impostazioni.
no_group: {label}: crea prima un gruppo in Impostazioni.
[duration]
second: secondi
minute: minuti
hour: ore
[add]
title: Aggiungere per indirizzo
kind: Tipo
base_url: Indirizzo (URL)
url: Indirizzo (URL)
host: Nome host o indirizzo IP
ip_address: Indirizzo IP
port: Porta
username: Nome utente (se c’è)
password: Password (se c’è)
section: Nome della sezione
rule: Usa solo a-z, 0-9 e _.
make: Aggiungere
this: Aggiungere questo dispositivo
done: Aggiunto. Si avvia ora.
other: Ogni altro tipo e chiave: modificare la configurazione.
confirm_remove: Togliere {name} dalla configurazione? I suoi dispositivi spariscono; stanze e nomi restano.
more: Altre impostazioni
test: Prova
found: Risponde: {names}
found_none: Risponde, ma non mostra ancora dispositivi.
trace: Richieste e risposte
edit: Modifica {name}
kept: Invariata
in_file: Modificalo nel file.
gone: La sezione {name} non c’è.
token: Token (se c’è)
default: Come al solito: {value}
saved: Salvato. Ora riparte.
[kind]
mqtt: Broker MQTT (Zigbee2MQTT, ESPHome, Tasmota)
hue: Bridge Philips Hue
tasmota_http: Tasmota via HTTP
elgato_lights: Luce Elgato
roku_tv: Roku TV
matter: Server Matter
fritzbox: FRITZ!Box (chi è in casa)
notify: Messaggi
virtual: Dispositivi virtuali
[copy]
what: Copiare: {name}
done: Copiato: {name}
[alias]
rule: Usa a-z, 0-9 e _, e inizia con una lettera.
offer: Dagli anche un id breve: le automazioni possono usarlo al posto di quello lungo.
`;
