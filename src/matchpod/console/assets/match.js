"use strict";
// The page of a match: links in the table of players open the form of their action in its place, and the tabs of maps
// say which one is shown. Without this file these links lead to a page with the form.
(() => {
  const page = document.getElementById("match");

  // Opens the form of an action with what the link says; false if there is none.
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

  // A page of a certain map stays on it when the next one is loaded.
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
