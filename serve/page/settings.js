// What the user has chosen: kept in this browser, sent with each turn.

import { byId, h, store, stored } from './dom.js';

// `send`: the field of a turn's request that it becomes; without a value the model's own default counts.
const kFields = [
  { key: 'system', label: 'System prompt', kind: 'text', note: 'of new conversations' },
  { key: 'temperature', label: 'Temperature', kind: 'number', min: 0, max: 2, step: 0.05, send: 'temperature' },
  { key: 'top_k', label: 'Top k', kind: 'number', min: 0, max: 1000, step: 1, send: 'top_k' },
  { key: 'top_p', label: 'Top p', kind: 'number', min: 0, max: 1, step: 0.01, send: 'top_p' },
  { key: 'min_p', label: 'Min p', kind: 'number', min: 0, max: 1, step: 0.01, send: 'min_p' },
  { key: 'repeat_penalty', label: 'Repetition penalty', kind: 'number', min: 0.1, max: 2, step: 0.05, send: 'repeat_penalty' },
  { key: 'max_tokens', label: 'Longest answer', kind: 'number', min: 1, max: 1000000, step: 1, send: 'max_tokens', note: 'tokens' },
  { key: 'seed', label: 'Seed', kind: 'number', min: 0, max: 2147483647, step: 1, send: 'seed', note: 'drawn anew for each answer' },
  { key: 'thinking', label: 'Thinking', kind: 'choice', choices: { '': 'as the model does', on: 'on', off: 'off' } },
  { key: 'theme', label: 'Theme', kind: 'choice', choices: { '': 'of the system', light: 'light', dark: 'dark' } },
];

let values = stored('settings', {});

export const setting = (key) => values[key] ?? '';

/** The fields of a turn's request that the settings ask for. `messages`: it has some, for a template to render. */
export function turnFields(messages) {
  const fields = {};
  for (const { key, send } of kFields) {
    if (send !== undefined && setting(key) !== '') fields[send] = setting(key);
  }
  if (messages && setting('thinking') !== '') fields.chat_template_kwargs = { enable_thinking: setting('thinking') === 'on' };
  return fields;
}

export function applyTheme() {
  const theme = setting('theme');
  if (theme === '') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function save(key, value) {
  values = { ...values, [key]: value };
  if (value === '') delete values[key];
  store('settings', values);
  applyTheme();
}

function inputFor(field) {
  const id = `setting-${field.key}`;
  const value = setting(field.key);
  if (field.kind === 'text') {
    return h('textarea', { id, rows: 4, value, onchange: (event) => save(field.key, event.target.value.trim()) });
  }
  if (field.kind === 'choice') {
    const options = Object.entries(field.choices).map(([key, label]) =>
      h('option', { value: key, selected: key === value }, label));
    return h('select', { id, onchange: (event) => save(field.key, event.target.value) }, options);
  }
  return h('input', {
    id,
    type: 'number',
    min: field.min,
    max: field.max,
    step: field.step,
    value,
    placeholder: 'default',
    onchange: (event) => {
      const number = event.target.valueAsNumber;
      if (Number.isNaN(number)) save(field.key, '');
      else if (event.target.checkValidity()) save(field.key, number);
      else event.target.reportValidity();
    },
  });
}

const licenseLink = (file, text) => h('a', { href: `/page/${file}`, target: '_blank', rel: 'noopener' }, text);

/** Shows the settings. `why`: a sentence above them, when the server wants a key. `done`: called when they are closed. */
export function showSettings({ why = '', done = () => {} } = {}) {
  const dialog = byId('settings');
  const key = h('input', {
    id: 'setting-key',
    type: 'password',
    autocomplete: 'off',
    value: sessionStorage.getItem('inlay.key') ?? stored('key', ''),
  });
  const remember = h('input', { id: 'setting-remember', type: 'checkbox', checked: stored('key', '') !== '' });
  const keepKey = () => {
    sessionStorage.setItem('inlay.key', key.value.trim());
    store('key', remember.checked ? key.value.trim() : '');
  };
  const rows = kFields.map((field) => h('div.setting', {},
    h('label', { htmlFor: `setting-${field.key}` }, field.label, field.note ? h('span.note', {}, ` ${field.note}`) : null),
    inputFor(field)));
  dialog.replaceChildren(h('form', { method: 'dialog', onsubmit: keepKey },
    h('h2', { id: 'settings-title' }, 'Settings'),
    why === '' ? null : h('p.why', { role: 'alert' }, why),
    h('div.setting', {}, h('label', { htmlFor: 'setting-key' }, 'API key'), key),
    h('div.setting', {}, h('label', { htmlFor: 'setting-remember' }, 'Keep the key in this browser'), remember),
    rows,
    h('p.note', {}, 'Inlay is free software: ', licenseLink('LICENSE', 'its licence'), ', ',
      licenseLink('NOTICE', 'what it contains'), '.'),
    h('div.row', {}, h('button.primary', {}, 'Done'))));
  dialog.addEventListener('close', () => done(), { once: true });
  dialog.showModal();
  (why === '' ? dialog.querySelector('#setting-system') : key).focus();
}
