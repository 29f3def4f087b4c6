"""Words and pictures of generated pages: what controls do, their labels in several languages, icons, names, data."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Language = Literal["en", "de", "fr", "es", "it", "nl", "pl", "ru"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "de", "fr", "es", "it", "nl", "pl", "ru")
"""Languages of labels. All are in scripts that common fonts have."""


class Concept(NamedTuple):
    """Something that a control does."""

    name: str
    function: str
    """In words, after "to"."""
    labels: tuple[str, ...]
    """By language, in the order of LANGUAGES."""
    path: str
    """Its icon: an SVG path on a grid of 24 x 24, drawn as a line."""


_ROWS: Final = """
save|store the changes|Save|Speichern|Enregistrer|Guardar|Salva|Opslaan|Zapisz|Сохранить|M5 3h11l3 3v15H5z M8 3v6h7V3 M8 21v-7h8v7
delete|remove the entry for good|Delete|Löschen|Supprimer|Eliminar|Elimina|Verwijderen|Usuń|Удалить|M4 7h16 M9 7V4h6v3 M6 7l1 14h10l1-14 M10 11v6 M14 11v6
edit|change the entry|Edit|Bearbeiten|Modifier|Editar|Modifica|Bewerken|Edytuj|Изменить|M4 20l1-5L16 4l4 4L9 19z M14 6l4 4
search|look something up|Search|Suchen|Rechercher|Buscar|Cerca|Zoeken|Szukaj|Найти|M10 4a6 6 0 1 0 0.01 0 M15 15l6 6
print|put it on paper|Print|Drucken|Imprimer|Imprimir|Stampa|Afdrukken|Drukuj|Печать|M7 9V3h10v6 M4 9h16v8H4z M7 14h10v7H7z
share|let other people see it|Share|Teilen|Partager|Compartir|Condividi|Delen|Udostępnij|Поделиться|M18 5a2 2 0 1 0 0.01 0 M6 12a2 2 0 1 0 0.01 0 M18 19a2 2 0 1 0 0.01 0 M8 13l8-5 M8 14l8 5
download|get a file from the server|Download|Herunterladen|Télécharger|Descargar|Scarica|Downloaden|Pobierz|Скачать|M12 3v12 M7 11l5 5 5-5 M4 20h16
upload|send a file to the server|Upload|Hochladen|Téléverser|Subir|Carica|Uploaden|Prześlij|Загрузить|M12 17V4 M7 9l5-5 5 5 M4 20h16
settings|change how the program behaves|Settings|Einstellungen|Paramètres|Ajustes|Impostazioni|Instellingen|Ustawienia|Настройки|M12 9a3 3 0 1 0 0.01 0 M12 2v4 M12 18v4 M2 12h4 M18 12h4 M5 5l3 3 M16 16l3 3 M5 19l3-3 M16 8l3-3
help|get an explanation|Help|Hilfe|Aide|Ayuda|Aiuto|Hulp|Pomoc|Справка|M12 2a10 10 0 1 0 0.01 0 M9 9a3 3 0 1 1 4 3l-1 2 M12 17v1
close|leave without storing anything|Close|Schließen|Fermer|Cerrar|Chiudi|Sluiten|Zamknij|Закрыть|M5 5l14 14 M19 5L5 19
refresh|load the newest state again|Refresh|Aktualisieren|Actualiser|Actualizar|Aggiorna|Vernieuwen|Odśwież|Обновить|M20 12a8 8 0 1 1-3-6 M20 3v5h-5
add|make a new entry|Add|Hinzufügen|Ajouter|Añadir|Aggiungi|Toevoegen|Dodaj|Добавить|M12 4v16 M4 12h16
copy|make a duplicate|Copy|Kopieren|Copier|Copiar|Copia|Kopiëren|Kopiuj|Копировать|M8 8h12v13H8z M5 16H4V3h11v2
undo|take the last change back|Undo|Rückgängig|Annuler|Deshacer|Annulla|Ongedaan maken|Cofnij|Отменить|M9 5L4 10l5 5 M4 10h10a6 6 0 0 1 0 11h-3
redo|repeat the change that was taken back|Redo|Wiederholen|Rétablir|Rehacer|Ripeti|Opnieuw|Ponów|Повторить|M15 5l5 5-5 5 M20 10H10a6 6 0 0 0 0 11h3
filter|show a part of the entries only|Filter|Filtern|Filtrer|Filtrar|Filtra|Filteren|Filtruj|Фильтр|M3 4h18l-7 9v7l-4-2v-5z
sort|change the order of the entries|Sort|Sortieren|Trier|Ordenar|Ordina|Sorteren|Sortuj|Сортировать|M7 4v16 M4 17l3 3 3-3 M17 20V4 M14 7l3-3 3 3
back|return to the previous page|Back|Zurück|Retour|Atrás|Indietro|Terug|Wstecz|Назад|M20 12H4 M10 5l-7 7 7 7
next|go on to the following page|Next|Weiter|Suivant|Siguiente|Avanti|Volgende|Dalej|Далее|M4 12h16 M14 5l7 7-7 7
home|go to the start page|Home|Startseite|Accueil|Inicio|Pagina iniziale|Startpagina|Strona główna|Главная|M3 11l9-8 9 8 M6 9v12h12V9 M10 21v-6h4v6
notifications|read what is new|Notifications|Benachrichtigungen|Notifications|Notificaciones|Notifiche|Meldingen|Powiadomienia|Уведомления|M6 17V10a6 6 0 0 1 12 0v7 M3 17h18 M10 20h4
account|see the own profile|Account|Konto|Compte|Cuenta|Account|Account|Konto|Профиль|M12 3a4 4 0 1 0 0.01 0 M4 21a8 8 0 0 1 16 0
cart|see what will be bought|Cart|Warenkorb|Panier|Carrito|Carrello|Winkelwagen|Koszyk|Корзина|M2 4h3l3 11h10l3-8H6 M9 19a1 1 0 1 0 0.01 0 M17 19a1 1 0 1 0 0.01 0
favorite|mark it as liked|Favorite|Favorit|Favori|Favorito|Preferito|Favoriet|Ulubione|Избранное|M12 3l3 6 6 1-4 5 1 6-6-3-6 3 1-6-4-5 6-1z
lock|forbid changes by others|Lock|Sperren|Verrouiller|Bloquear|Blocca|Vergrendelen|Zablokuj|Заблокировать|M5 11h14v10H5z M8 11V7a4 4 0 0 1 8 0v4
mail|write a message|Mail|Nachricht|Message|Mensaje|Messaggio|Bericht|Wiadomość|Письмо|M3 5h18v14H3z M3 6l9 7 9-7
calendar|choose a day|Calendar|Kalender|Calendrier|Calendario|Calendario|Kalender|Kalendarz|Календарь|M4 5h16v16H4z M4 10h16 M8 3v4 M16 3v4
play|start the video|Play|Abspielen|Lire|Reproducir|Riproduci|Afspelen|Odtwórz|Воспроизвести|M6 4l14 8-14 8z
attach|put a file into the message|Attach|Anhängen|Joindre|Adjuntar|Allega|Bijvoegen|Załącz|Прикрепить|M20 11l-9 9a5 5 0 0 1-7-7l9-9a3 3 0 0 1 5 5l-9 9a1 1 0 0 1-2-2l8-8
zoom|see it larger|Zoom in|Vergrößern|Agrandir|Ampliar|Ingrandisci|Vergroten|Powiększ|Увеличить|M10 3a7 7 0 1 0 0.01 0 M15 15l6 6 M10 7v6 M7 10h6
logout|end the session|Log out|Abmelden|Déconnexion|Cerrar sesión|Esci|Uitloggen|Wyloguj|Выйти|M10 4H4v16h6 M9 12h12 M16 7l5 5-5 5
"""


def _concept(row: str) -> Concept:
    name, function, *labels, path = row.split("|")
    assert len(labels) == len(LANGUAGES), f"{name}: a label for each language"
    return Concept(name, function, tuple(labels), path)


CONCEPTS: Final = {concept.name: concept for concept in map(_concept, _ROWS.strip().split("\n"))}
"""By name. No two do the same, so that a function names one of them."""

PEOPLE: Final = (
    *("Ann Berg", "Ben Okafor", "Carla Diaz", "Dmitri Volkov", "Elif Kaya", "Farid Haddad", "Grete Holm", "Hugo Silva"),
    *("Ines Moreau", "Jonas Weber", "Kaja Nowak", "Luca Ricci", "Maya Patel", "Noor de Vries", "Olga Ivanova"),
    *("Pavel Novak", "Quinn Reilly", "Rosa Lindqvist", "Samuel Osei", "Tove Nilsen", "Uma Rao", "Viktor Szabo"),
)
ITEMS: Final = (
    *("Oak table", "Desk lamp", "Wool blanket", "Garden chair", "Tea kettle", "Paper tray", "Travel mug", "Wall clock"),
    *("Bike helmet", "Rain jacket", "Camping stove", "Chess set", "Bread knife", "Photo frame", "Yoga mat", "Door bell"),
    *("Steel ladder", "Phone stand", "Linen shirt", "Water filter", "Sun hat", "Snow shovel"),
)
FILES: Final = (
    *("report-2024.pdf", "budget.xlsx", "minutes.docx", "logo.svg", "photo_017.jpg", "backup.tar", "plan-b.odt"),
    *("invoice_883.pdf", "notes.txt", "slides.pptx", "contract.pdf", "map.png", "index.html", "readme.md", "data.csv"),
)
STATES: Final = ("open", "paid", "draft", "shipped", "overdue", "archived", "in review")
CITIES: Final = ("Oslo", "Porto", "Graz", "Lyon", "Turku", "Bergen", "Lublin", "Ghent", "Malmö", "Zadar")

_FIELD_ROWS: Final = """
First name|Vorname|Prénom|Nombre|Nome|Voornaam|Imię|Имя
Last name|Nachname|Nom|Apellido|Cognome|Achternaam|Nazwisko|Фамилия
Email|E-Mail|E-mail|Correo|E-mail|E-mail|E-mail|Почта
Phone|Telefon|Téléphone|Teléfono|Telefono|Telefoon|Telefon|Телефон
City|Stadt|Ville|Ciudad|Città|Stad|Miasto|Город
Street|Straße|Rue|Calle|Via|Straat|Ulica|Улица
Company|Firma|Entreprise|Empresa|Azienda|Bedrijf|Firma|Компания
Postcode|Postleitzahl|Code postal|Código postal|CAP|Postcode|Kod pocztowy|Индекс
Date of birth|Geburtsdatum|Date de naissance|Fecha de nacimiento|Data di nascita|Geboortedatum|Data urodzenia|Дата рождения
Password|Passwort|Mot de passe|Contraseña|Password|Wachtwoord|Hasło|Пароль
"""
FIELDS: Final = tuple(tuple(row.split("|")) for row in _FIELD_ROWS.strip().split("\n"))
"""Labels of form fields, each by language."""
_TITLE_ROWS: Final = """
Orders|Bestellungen|Commandes|Pedidos|Ordini|Bestellingen|Zamówienia|Заказы
Customers|Kunden|Clients|Clientes|Clienti|Klanten|Klienci|Клиенты
Reports|Berichte|Rapports|Informes|Rapporti|Rapporten|Raporty|Отчёты
Invoices|Rechnungen|Factures|Facturas|Fatture|Facturen|Faktury|Счета
Products|Produkte|Produits|Productos|Prodotti|Producten|Produkty|Товары
Messages|Nachrichten|Messages|Mensajes|Messaggi|Berichten|Wiadomości|Сообщения
Projects|Projekte|Projets|Proyectos|Progetti|Projecten|Projekty|Проекты
Team|Team|Équipe|Equipo|Squadra|Team|Zespół|Команда
Sales|Umsatz|Ventes|Ventas|Vendite|Verkoop|Sprzedaż|Продажи
Visits|Besuche|Visites|Visitas|Visite|Bezoeken|Wizyty|Визиты
"""
TITLES: Final = tuple(tuple(row.split("|")) for row in _TITLE_ROWS.strip().split("\n"))
"""Titles of sections, each by language."""
