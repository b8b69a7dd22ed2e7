// Every view, with the address that shows it and what must be on the page when it is ready.
export const views = [
  ['runs', '#/runs', 'table'],
  ['compare', '#/runs?compare=classify/003,classify/002&smooth=0.6', '.uplot'],
  ['run', '#/runs/classify/002', '.uplot'],
  ['samples', '#/runs/classify/002?tab=samples', '.samples li'],
  ['confusion', '#/runs/classify/002?tab=confusion', '.matrix'],
  ['heads', '#/runs/classify/002?tab=heads', '.figure svg ellipse'],
  ['settings', '#/runs/classify/002?tab=settings', 'tbody tr'],
  ['log', '#/runs/classify/002?tab=log', '.log'],
  ['new-run', '#/runs/new?s.rate=0.01', '.setting-grid'],
  ['inspect-text', '#/inspect?model=gpt2&query=6&off=attention:2.1', '.heads-grid canvas'],
  ['inspect-matrix', '#/inspect?model=sentiment&view=matrix&layer=1&head=2&shapes=1', '.matrix'],
  ['inspect-translation', '#/inspect?model=opus-mt-en-de', '.arcs'],
  ['inspect-image', '#/inspect?model=fashion', '.drop'],
  ['inspect-terms', '#/inspect?model=gpt2&terms=bars&layer=3&head=2&query=6', '.thumb.shares'],
  ['inspect-terms-table', '#/inspect?model=sentiment&terms=table&layer=1&head=1', '.term-table'],
  ['inspect-terms-translation', '#/inspect?model=opus-mt-en-de&terms=bars', '.thumb.shares'],
  ['inspect-terms-image', '#/inspect?model=fashion&terms=maps&query=20', '.drop'],
  ['complete', '#/play/complete', 'textarea'],
  ['chat', '#/play/chat', '.chat'],
  ['translate', '#/play/translate', '.translations'],
  ['classify', '#/play/classify?model=sentiment', '.probabilities'],
  ['classify-image', '#/play/classify?model=fashion', '.drop'],
  ['embed', '#/play/embed', '.figure svg circle'],
  ['attention', '#/attention', '.matrix'],
  ['attention-row', '#/attention?layout=tokens&content=1&show=gradient', '.matrix'],
  ['lab', '#/lab', '.card'],
  ['experiment', '#/lab/L1', '.verdict'],
  ['cost', '#/cost', 'table.compare td'],
];

// A shirt of 28 x 28 pixels.
export const shirt =
  'iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAAAAABXZoBIAAAAN0lEQVR4nGNgGKxgxoIVG3YcOHFgx4YVC+CCEQkZBRUNHROQJWdM6GioKMhIGHySeL0yKjnUJAEIBOrBat8OQQAAAABJRU5ErkJggg==';
