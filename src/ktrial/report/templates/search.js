'use strict';
// One field that looks through the whole page: sections without a match go, and come back.
(function () {
  const KEY = 'search';
  const field = document.getElementById('search');
  if (!field) return;
  const input = field.querySelector('input');
  const count = field.querySelector('output');
  const sections = [...document.querySelectorAll('main > section')].filter(one => !one.contains(field));
  const items = sections.map(one => [...one.querySelectorAll('tbody > tr, .changes > li, .names > li')]);

  function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    sections.forEach((section, place) => {
      let here = 0;
      for (const one of items[place]) {
        const holds = words.every(word => one.textContent.toLowerCase().includes(word));
        one.classList.toggle('unfound', !holds);
        here += holds;
      }
      section.classList.toggle('unfound', words.length > 0 && !here);
      found += here;
    });
    count.textContent = words.length ? found + ' found' : '';
    address.keep(KEY, input.value.trim());
  }

  function restored() {
    input.value = address.of(KEY);
    search();
  }

  field.hidden = false;
  input.addEventListener('input', search);
  address.changed(restored);
  restored();
})();
