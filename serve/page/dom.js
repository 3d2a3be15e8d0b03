// Elements without HTML: what a model or a user wrote becomes text nodes, and nothing else.

/**
 * Makes an element.
 * @param {string} tag such as "button.quiet.small": the name, then classes.
 * @param {Object} [props] "on..." are listeners; "dataset" and "style" objects; the rest are properties
 *     where the element has one of that name, else attributes. Those that are null or undefined are left out.
 * @param {...(Node|string|null|undefined|Array)} children
 * @return {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'dataset' || key === 'style') Object.assign(element[key], value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const kSvg = 'http://www.w3.org/2000/svg';

/** Makes an SVG element with these attributes. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(kSvg, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Whether a key sends what is written. The keyboards of phones have no other key for a new line. */
export function sends(event) {
  return event.key === 'Enter' && !event.shiftKey && !event.isComposing && !matchMedia('(pointer: coarse)').matches;
}

/** Says something for a few seconds, also to screen readers. `action`: {label, run}. */
export function toast(text, action = null) {
  const box = byId('toast');
  box.replaceChildren(text);
  if (action !== null) {
    box.append(h('button.small', { onclick: () => { box.hidden = true; action.run(); } }, action.label));
  }
  box.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, action === null ? 5000 : 10000);
}

/** Asks in a dialog. Resolves to whether the answer was yes. */
export function confirmed(question, yes) {
  const dialog = byId('confirm');
  const accept = h('button.primary', { value: 'yes' }, yes);
  dialog.replaceChildren(h('form', { method: 'dialog' }, h('p', {}, question),
    h('div.row', {}, accept, h('button', { value: 'no' }, 'Cancel'))));
  dialog.returnValue = '';
  dialog.showModal();
  accept.focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/** A value of this browser that survives reloads; `fallback` where it cannot be read. */
export function stored(key, fallback) {
  try {
    const text = localStorage.getItem(`inlay.${key}`);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function store(key, value) {
  try {
    localStorage.setItem(`inlay.${key}`, JSON.stringify(value));
  } catch {
    // Private windows and full disks: it is forgotten with the page.
  }
}
