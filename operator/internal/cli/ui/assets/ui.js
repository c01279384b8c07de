"use strict";
// The server sends the parts of the page that changed; this puts them where they belong. A stream that breaks is opened again by the browser.
const link = document.getElementById("link");
const filter = document.getElementById("filter");

function show(row) {
  const cell = row.querySelector("[data-outcome]");
  row.hidden = Boolean(filter && filter.value && cell && cell.dataset.outcome !== filter.value);
}

const stream = new EventSource(location.pathname);
stream.onopen = () => { link.textContent = "live"; link.classList.remove("lost"); };
stream.onerror = () => { link.textContent = "not live: the page's server does not answer"; link.classList.add("lost"); };
stream.onmessage = (event) => {
  const part = JSON.parse(event.data);
  let place = document.getElementById(part.id);
  if (part.in === "gone") {
    if (place) place.remove();
    return;
  }
  if (!place) {
    const table = part.in && document.getElementById(part.in);
    if (!table) return;
    place = document.createElement("tr");
    place.id = part.id;
    table.append(place);
  }
  const focused = place.contains(document.activeElement) ? [...place.querySelectorAll("a")].indexOf(document.activeElement) : -1;
  assayFigures.replace(place, part.html); // figures.js: their readers go on where they were
  if (focused >= 0) place.querySelectorAll("a")[focused]?.focus();
  if (part.in) show(place);
};
if (filter) filter.onchange = () => document.querySelectorAll("#trials > tr").forEach(show);
