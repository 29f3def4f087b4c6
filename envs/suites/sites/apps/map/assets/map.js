// Draws the base map, the page's places as markers and its route as a line.
(async () => {
  "use strict";
  const element = document.getElementById("map");
  const points = JSON.parse(element.dataset.points);
  const line = JSON.parse(element.dataset.line);
  const map = L.map(element, {preferCanvas: true, attributionControl: false, keyboard: false}).setView([60.1716, 24.9443], 15);
  const paint = {
    park: {stroke: false, fillColor: "#cfe6c0", fillOpacity: 1},
    water: {stroke: false, fillColor: "#aad3df", fillOpacity: 1},
    building: {color: "#c4b8a8", weight: 0.5, fillColor: "#ded5ca", fillOpacity: 1},
    path: {color: "#c9bba8", weight: 1},
    street: {color: "#ffffff", weight: 4},
    road: {color: "#f6d28c", weight: 6},
  };
  const base = await (await fetch("/static/base.json")).json();
  L.geoJSON(base, {style: (feature) => paint[feature.properties.kind], interactive: false}).addTo(map);
  if (line.length) L.polyline(line, {color: "#b3261e", weight: 5, interactive: false}).addTo(map);
  for (const point of points) L.marker([point.lat, point.lon], {title: point.name, alt: point.name, keyboard: false, interactive: false}).addTo(map);
  const shown = line.length ? line : points.map((point) => [point.lat, point.lon]);
  if (shown.length) map.fitBounds(shown, {padding: [30, 30], maxZoom: 17});
  map.on("click", (event) => {
    const {lat, lng} = event.latlng;
    location.assign(`/reverse?lat=${lat.toFixed(5)}&lon=${lng.toFixed(5)}`);
  });
})();
