// The set as it grows: asked for again every ten seconds, shown as soon as there is one.
const growing = document.getElementById("growing");
if (growing) {
  const address = growing.getAttribute("src");
  const show = () => { growing.hidden = false; document.getElementById("growing-none").hidden = true; };
  growing.addEventListener("load", show);
  if (growing.complete && growing.naturalWidth) show();
  setInterval(() => { if (!document.hidden) growing.src = `${address}?at=${Date.now()}`; }, 10000);
}
