"use strict";
// The page of a match: links in the table of players open the form of their action on the page, and the tabs of maps
// mark the map that is shown. Without this script, the links open another page with the form.
(() => {
  const page = document.getElementById("match");

  // Opens the form of an action with the values in the link; false if there is no such form.
  function openForm({ act, player, as }) {
    const action = document.getElementById(`act-${act}`), form = action?.querySelector("form");
    if (!form) return false;
    const given = { [`act-${act}-steamId`]: player, [`act-${act}-out`]: player, [`act-${act}-as`]: as };
    for (const [id, value] of Object.entries(given)) {
      const field = document.getElementById(id);
      if (field && value !== undefined && field.matches("select")) {
        field.value = value;
        field.dispatchEvent(new Event("change", { bubbles: true }));
      }
    }
    action.open = true;
    action.scrollIntoView({ block: "center" });
    return true;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-act]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (openForm(link.dataset)) event.preventDefault();
    link.closest("details")?.removeAttribute("open");
  });

  // A page of a chosen map keeps showing this map when the next map is loaded.
  function showTab() {
    const tabs = document.getElementById("tabs"), isChosen = page.dataset.isChosen !== undefined;
    if (!tabs || !isChosen) return;
    for (const tab of tabs.querySelectorAll("[data-map]")) {
      if (tab.dataset.map === page.dataset.shown) tab.setAttribute("aria-current", "true");
      else tab.removeAttribute("aria-current");
    }
    const strip = document.getElementById("strip");
    if (strip?.dataset.map && strip.dataset.map !== page.dataset.shown) location.reload();
  }

  new MutationObserver(showTab).observe(page, { childList: true, subtree: true, attributeFilter: ["data-current"] });
  showTab();
})();
