// Every two seconds: how far are the runs? If a run came, went, began or ended, show the page anew.
const version = document.body.querySelector("[data-version]").dataset.version;
async function look() {
  try {
    const reply = await fetch("/api/live", { cache: "no-store" });
    if (!reply.ok) return;
    const live = await reply.json();
    if (live.version !== version) { location.reload(); return; }
    for (const job of document.querySelectorAll("[data-run]")) {
      const now = live.running[job.dataset.run];
      if (!now) continue;
      const bar = job.querySelector("progress");
      if (now.total > 0) { bar.max = now.total; bar.value = now.step; }
      job.querySelector(".words").textContent = now.words;
    }
  } catch (gone) { /* the server has been stopped; the page stays as it is */ }
}
setInterval(() => { if (!document.hidden) look(); }, 2000);
