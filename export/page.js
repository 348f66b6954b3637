"use strict";
(() => {
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  root.classList.add("js");

  // Light and dark: as the system has it, unless somebody chose.
  const themes = { "": "Auto", light: "Light", dark: "Dark" };
  const kept = {
    get() { try { return localStorage.getItem("antiphon-theme") || ""; } catch { return ""; } },
    set(v) { try { localStorage.setItem("antiphon-theme", v); } catch { /* a page of its own cannot keep it */ } },
  };
  const setTheme = (v) => {
    if (v in themes && v) root.dataset.theme = v; else delete root.dataset.theme;
    by("theme").textContent = "◐ " + (themes[v] || "Auto");
    by("theme").setAttribute("aria-label", "Colours: " + (themes[v] || "Auto"));
  };
  setTheme(kept.get());
  by("theme").addEventListener("click", () => {
    const names = Object.keys(themes);
    const v = names[(names.indexOf(root.dataset.theme || "") + 1) % names.length];
    kept.set(v);
    setTheme(v);
  });

  // Times as the reader's clock has them; the page itself has them in UTC.
  for (const t of document.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    t.title = at.toLocaleString() + " (" + t.dateTime + ")";
    t.textContent = t.closest(".about") ? at.toLocaleString() : at.toLocaleTimeString();
  }

  // Copying: the text that the model wrote, or what is seen.
  document.addEventListener("click", async (e) => {
    const button = e.target.closest("button.copy");
    if (!button) return;
    const whole = button.closest("figure, .entry");
    const text = whole.dataset.source ?? whole.querySelector("pre, .prose").textContent;
    let said = "Copied";
    try { await navigator.clipboard.writeText(text); } catch { said = copyOldWay(text) ? "Copied" : "Not copied"; }
    button.textContent = by("said").textContent = said;
    setTimeout(() => { button.textContent = "Copy"; by("said").textContent = ""; }, 1500);
  });
  const copyOldWay = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "sr";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };

  // An image that stands in the page once is shown wherever it was sent.
  for (const link of document.querySelectorAll("a.same")) {
    const image = document.querySelector("#" + link.hash.slice(1) + " > img");
    if (image) link.replaceChildren(image.cloneNode());
  }

  // Folding. What was opened for a search is folded again when it ends.
  const folds = [...document.querySelectorAll("main details")];
  const opened = new Set();
  const unfold = by("unfold");
  unfold.addEventListener("click", () => {
    const open = unfold.getAttribute("aria-pressed") !== "true";
    for (const d of folds) d.open = open;
    opened.clear();
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  const openAround = (el) => {
    for (let d = el && el.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
  };
  const toHash = () => {
    const el = location.hash && by(decodeURIComponent(location.hash.slice(1)));
    if (!el) return;
    openAround(el);
    const fold = el.querySelector(":scope > .body > details");
    if (fold) fold.open = true;
    el.scrollIntoView();
  };
  addEventListener("hashchange", toHash);
  toHash();
  let printing = [];
  addEventListener("beforeprint", () => { printing = folds.filter((d) => !d.open); for (const d of printing) d.open = true; });
  addEventListener("afterprint", () => { for (const d of printing) d.open = false; });

  // Search: entries without a match go, matches are marked, what is folded around
  // them opens.
  const query = by("query"), only = by("only"), count = by("count");
  const entries = [...document.querySelectorAll("main .entry")];
  const marks = typeof Highlight === "function" && CSS.highlights;
  const maxMarks = 5000;
  let texts, found = [], at = -1;

  const wanted = (e) => {
    switch (only.value) {
      case "": return true;
      case "problem": return "problem" in e.dataset;
    }
    return e.dataset.kind === only.value || e.querySelector(`.entry[data-kind="${only.value}"]`) !== null;
  };
  const seen = (node) => !node.parentElement.closest(".sr, .copy, .gutter");
  const matchesIn = (e, q) => {
    const list = [];
    const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (!node.data || !seen(node)) continue;
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let i = text.indexOf(q); i >= 0 && found.length + list.length < maxMarks; i = text.indexOf(q, i + q.length)) {
        const range = document.createRange();
        range.setStart(node, i);
        range.setEnd(node, i + q.length);
        list.push(range);
      }
    }
    return list;
  };
  const search = () => {
    const q = query.value.trim().toLowerCase();
    for (const d of opened) d.open = false;
    opened.clear();
    found = [];
    at = -1;
    texts ??= q ? entries.map((e) => e.textContent.toLowerCase()) : undefined;
    let shown = 0;
    entries.forEach((e, i) => {
      const outer = e.parentElement.closest(".entry");
      e.hidden = !(wanted(e) && (!q || texts[i].includes(q))) || (outer !== null && outer.hidden);
      if (e.hidden) return;
      if (outer === null) {
        shown++;
        if (q && found.length < maxMarks) found.push(...matchesIn(e, q));
      }
    });
    for (const range of found) {
      for (let d = range.startContainer.parentElement.closest("details"); d; d = d.parentElement.closest("details")) {
        const inSummary = d.firstElementChild.contains(range.startContainer);
        if (!d.open && !inSummary) { d.open = true; opened.add(d); }
      }
    }
    if (marks) {
      marks.clear();
      if (found.length) marks.set("found", new Highlight(...found));
    }
    by("nothing").hidden = shown > 0;
    by("previous").disabled = by("next").disabled = found.length === 0;
    tell(q, shown);
  };
  const tell = (q, shown) => {
    const many = found.length === maxMarks ? `${maxMarks} and more` : found.length;
    count.textContent = q ? (at >= 0 ? `${at + 1} of ${many}` : `${many} found`) : only.value ? `${shown} shown` : "";
  };
  const step = (by) => {
    if (!found.length) return;
    at = (at + by + found.length + (at < 0 && by < 0 ? 1 : 0)) % found.length;
    const range = found[at];
    openAround(range.startContainer.parentElement);
    if (marks) marks.set("here", new Highlight(range));
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    tell(true, 0);
  };
  let timer;
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, entries.length > 2000 ? 200 : 60); });
  only.addEventListener("change", search);
  by("next").addEventListener("click", () => step(1));
  by("previous").addEventListener("click", () => step(-1));
  by("previous").disabled = by("next").disabled = true;
  query.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { clearTimeout(timer); if (at < 0) search(); step(e.shiftKey ? -1 : 1); e.preventDefault(); }
    if (e.key === "Escape") { query.value = ""; search(); query.blur(); }
  });
  addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    e.preventDefault();
    query.focus();
    query.select();
  });
})();
