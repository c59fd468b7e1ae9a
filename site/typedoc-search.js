// Under each result of TypeDoc's search: what is said where the words are found. A result that is a document leads there.
(() => {
  const [most, before] = [180, 50];

  let loading;
  /** Texts by address, of site/search-texts.mjs; loaded with the first result. */
  function loadTexts(base) {
    loading ??= new Promise((resolve) => {
      const script = document.createElement('script');
      script.src = `${base}assets/search-texts.js`;
      script.onload = () => resolve(window.searchTexts);
      script.onerror = () => resolve({});
      document.head.append(script);
    });
    return loading;
  }

  /** Beginnings of words, whatever their case. */
  function pattern(words, flags = 'i') {
    const escaped = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`(?<![a-z0-9])(${escaped.join('|')})`, flags);
  }

  /** How well a section fits: long words tell more than short ones, and those of its heading most. */
  function fit([, heading, text], words) {
    return words.reduce((sum, word) => {
      const found = pattern([word]);
      return sum + word.length * (2 * found.test(heading) + found.test(text));
    }, 0);
  }

  /** The part of a text around the longest of the words. */
  function partOf(text, words) {
    const longest = words.toSorted((a, b) => b.length - a.length);
    const found = longest.map((word) => text.search(pattern([word]))).find((at) => at >= 0) ?? 0;
    const from = found <= before ? 0 : text.indexOf(' ', found - before) + 1;
    const to = text.length - from <= most ? text.length : text.lastIndexOf(' ', from + most);
    return `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
  }

  /** The text with the words marked, as nodes. */
  function marked(text, words) {
    return text.split(pattern(words, 'gi')).map((part, i) => {
      if (i % 2 === 0) return part;
      const mark = document.createElement('mark');
      mark.textContent = part;
      return mark;
    });
  }

  function tell(link, sections, words) {
    const best = sections.reduce((one, other) =>
      fit(other, words) > fit(one, words) ? other : one,
    );
    const [anchor, heading, text] = best;
    if (best !== sections[0]) link.href += `#${anchor}`;
    const excerpt = document.createElement('small');
    excerpt.className = 'excerpt';
    const head = best === sections[0] ? '' : `${heading}: `;
    excerpt.append(...marked(head + partOf(text, words), words));
    link.querySelector('.text').append(excerpt);
  }

  document.addEventListener('DOMContentLoaded', () => {
    const results = document.getElementById('tsd-search-results');
    const field = document.getElementById('tsd-search-input');
    if (results === null || field === null) return;
    const base = new URL(
      document.documentElement.dataset.base.replace(/\/?$/, '/'),
      document.baseURI,
    ).href;
    // What lunr's language takes for its own is none of a reader's words: --rows, a:b, "a phrase".
    const value = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
    Object.defineProperty(field, 'value', {
      ...value,
      get() {
        return value.get.call(this).replaceAll(/[-+:^~*"]+/g, ' ');
      },
    });
    new MutationObserver(async () => {
      const links = [...results.querySelectorAll('a:not(:has(.excerpt))')];
      if (links.length === 0) return;
      const texts = await loadTexts(base);
      const words = field.value.trim().toLowerCase().split(/\s+/);
      for (const link of links) {
        const sections = texts[link.href.slice(base.length)];
        if (sections?.length > 0 && link.querySelector('.excerpt') === null)
          tell(link, sections, words);
      }
    }).observe(results, { childList: true });
  });
})();
