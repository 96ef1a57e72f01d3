// export.js: the picture as it is seen, as a file: SVG that carries its own styles, or PNG made
// from it.
import { $, svg } from "./dom.js";

const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight",
  "text-decoration-line", "text-decoration-thickness", "image-rendering", "transform"];

// A copy in which every element has the styles that the page gives it, on the page's ground.
export function standalone(image) {
  const copy = image.cloneNode(true), all = root => [root, ...root.querySelectorAll("*")], to = all(copy);
  all(image).forEach((element, i) => {
    const style = getComputedStyle(element);
    if (style.display === "none") return to[i].remove(); // marks that are not there now
    for (const name of kept) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none" || name === "fill" || name === "stroke") to[i].style.setProperty(name, value);
    }
    to[i].removeAttribute("class");
  });
  const [x, y, width, height] = image.getAttribute("viewBox").split(" ");
  const ground = getComputedStyle(image.closest(".card") ?? document.body).backgroundColor;
  copy.prepend(svg("rect", { x, y, width, height, style: `fill:${ground}` }));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

// The same as pixels, twice as fine as the screen.
export async function pixels(image, text) {
  const canvas = document.createElement("canvas"), loaded = new Image(), fine = 2;
  canvas.width = fine * image.width.baseVal.value;
  canvas.height = fine * image.height.baseVal.value;
  loaded.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await loaded.decode();
  canvas.getContext("2d").drawImage(loaded, 0, 0, canvas.width, canvas.height);
  return new Promise(done => canvas.toBlob(done, "image/png"));
}

function save(blob, name) {
  const link = document.createElement("a"), address = URL.createObjectURL(blob);
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// The two buttons; image(): the drawing of now; name(): of the file, without an ending
export function offerFiles(image, name) {
  const text = () => standalone(image());
  $("save-svg").addEventListener("click", () => save(new Blob([text()], { type: "image/svg+xml" }), `${name()}.svg`));
  $("save-png").addEventListener("click", async () => save(await pixels(image(), text()), `${name()}.png`));
}
