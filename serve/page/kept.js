// What this tab keeps over reloads: texts that are not sent yet, and requests that have had no reply.

function kept(key, fallback) {
  return JSON.parse(sessionStorage.getItem(`inlay.${key}`) ?? fallback);
}

const drafts = new Map(kept('drafts', '[]'));

/** The text that is not sent yet of a conversation (null: a new one); empty where there is none. */
export function draftOf(name) {
  return drafts.get(name ?? '') ?? '';
}

export function setDraft(name, text) {
  if (text === '') drafts.delete(name ?? '');
  else drafts.set(name ?? '', text);
  try {
    sessionStorage.setItem('inlay.drafts', JSON.stringify([...drafts]));
  } catch {
    // Too long to be kept over a reload.
  }
}

/** The body of the request for a turn of this session that has had no reply; null where there is none. */
export function pendingOf(name) {
  return kept('pending', '{}')[name] ?? null;
}

/** @param {?Object} body null: it has had its reply. */
export function setPending(name, body) {
  const { [name]: _, ...all } = kept('pending', '{}');
  sessionStorage.setItem('inlay.pending', JSON.stringify(body === null ? all : { ...all, [name]: body }));
}
