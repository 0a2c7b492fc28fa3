'use strict';
// Closed sections are made when they are opened, by hand, by a link into them, or to be printed. What they hold
// stands in a noscript element, which a browser without scripts shows, or packed in a large page's element `parts`.
// An event `made` tells the other scripts what is new.
(function () {
  const ALWAYS_PRINTED = 'details.print';

  const packed = document.getElementById('parts');
  let parts = packed ? null : [];
  let words = [];
  const ready = packed ? unpack(packed.textContent).then(([list, ...texts]) => {
    words = list.split('\u0001');
    parts = texts;
  }) : Promise.resolve();

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return (await new Response(plain).text()).split('\0');
  }

  function heldBy(kept) {
    if (kept.localName === 'noscript') return kept.textContent;
    return words.length < 2 ? parts[kept.dataset.part] : parts[kept.dataset.part].replace(
      /[\ue000-\uf8ff]/g, character => words[character.charCodeAt(0) - 0xe000]);
  }

  function make(section) {
    if (!parts) {
      ready.then(() => make(section));
      return;
    }
    for (const kept of section.querySelectorAll(':scope > .later')) {
      const parsed = document.createElement('template');
      parsed.innerHTML = heldBy(kept);
      kept.replaceWith(parsed.content);
    }
    section.dispatchEvent(new CustomEvent('made', {bubbles: true}));
    makeOpen(section);
  }

  function makeOpen(part) {
    for (const one of part.querySelectorAll('details[open]'))
      if (one.querySelector(':scope > .later, :scope > .without')) make(one);
  }

  function open(section) {
    make(section);
    section.open = true;
  }

  function holding(id) {
    const there = document.getElementById(id);
    if (there) return there;
    const mark = ' id="' + id + '"';
    const kept = [...document.querySelectorAll('details > .later')].find(one => heldBy(one).includes(mark));
    if (kept) make(kept.parentElement);
    return kept && document.getElementById(id);
  }

  function reach() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && holding(id);
    if (!target) return;
    for (let at = target.closest('details'); at; at = at.parentElement.closest('details')) open(at);
    target.scrollIntoView();
  }

  function openAll() {
    for (let closed; (closed = document.querySelectorAll('main details:not([open])')).length;) closed.forEach(open);
  }

  let opened = [];
  function beforePrint() {
    document.querySelectorAll('.by-width').forEach(make);
    opened = [...document.querySelectorAll(ALWAYS_PRINTED)].filter(one => !one.open);
    opened.forEach(open);
  }

  function afterPrint() {
    opened.forEach(section => { section.open = false; });
    opened = [];
  }

  // `toggle` comes late: the click makes what is opened at once, `toggle` what is opened otherwise.
  addEventListener('click', event => {
    const section = event.target.closest('summary')?.parentElement;
    if (section && !section.open) make(section);
    if (event.target.closest('a[href^="#"]')) setTimeout(reach);
  });
  addEventListener('toggle', event => { if (event.target.open) make(event.target); }, true);
  addEventListener('hashchange', reach);
  addEventListener('beforeprint', beforePrint);
  addEventListener('afterprint', afterPrint);
  for (const part of document.querySelectorAll('.by-width')) {
    const fits = matchMedia(part.dataset.media);
    const shown = () => { if (fits.matches) make(part); };
    fits.addEventListener('change', shown);
    shown();
  }
  const button = document.querySelector('.open-all');
  if (button && document.querySelector('main details:not([open])')) {
    button.hidden = false;
    button.addEventListener('click', () => ready.then(openAll));
  }
  ready.then(() => { makeOpen(document); reach(); });
})();
