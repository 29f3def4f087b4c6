// Drawn areas: parts of the view in which no control can be numbered, so that only a point of them can be clicked.

const DRAWN_TAGS = new Set(['canvas', 'object', 'embed', 'svg']);
const DRAWN_WORDS = new Set('map leaflet maplibregl mapboxgl gmap openlayers chart plot graph board diagram whiteboard sketch crop cropper'.split(' '));
const MAX_SURFACES = 20;
const LEAST_SURFACE = 40; // CSS pixels of the shorter side
const LEAST_DRAWING = 100; // the same for drawings and listening areas, which may be icons and cards

/** Whether an element with a listener draws what is clicked in it: a picture, or a map by the words of its class. */
const drawsItself = (element, tag) => tag === 'img' || tokensOf(element).some((token) => segmentsOf(token).some((word) => DRAWN_WORDS.has(word)));

/** The drawn areas in the view, with their boxes in CSS pixels of the viewport of this process's top document. */
function surfacesOf(observation) {
  const found = [];
  for (const { element, tag } of observation.surfaces) {
    const box = attempt(() => topBox(element), null);
    const least = tag === 'canvas' || tag === 'object' || tag === 'embed' ? LEAST_SURFACE : LEAST_DRAWING;
    if (!box || box[2] < least || box[3] < least) continue;
    if (box[0] >= innerWidth || box[1] >= innerHeight || box[0] + box[2] <= 0 || box[1] + box[3] <= 0) continue;
    found.push({ kind: tag === 'img' ? 'picture' : DRAWN_TAGS.has(tag) ? tag : 'area', name: cut(attempt(() => surfaceName(element), ''), 60), box });
    if (found.length === MAX_SURFACES) break;
  }
  return found;
}

const surfaceName = (element) => clean(attr(element, 'aria-label') || attr(element, 'alt') || attr(element, 'title') || attr(element, 'id'));
