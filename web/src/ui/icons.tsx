// Line icons on a 24 x 24 grid.
const paths = {
  runs: 'M4 19V5M4 19h16M7.5 14.5l3.5-4 3 2.5 5-6.5',
  inspect: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
  play: 'M20 12a8 7 0 0 1-11.6 6.2L4 19.5l1.2-3.9A7 7 0 0 1 4 12a8 7 0 0 1 16 0z',
  attention:
    'M6 7a1.5 1.5 0 1 0 0-.01M18 5.5a1.5 1.5 0 1 0 0-.01M6 17.5a1.5 1.5 0 1 0 0-.01M18 18.5a1.5 1.5 0 1 0 0-.01M7.5 7l9-1M7 8l10 9.5M7.5 17L17 6.5M7.5 17.5l9 1',
  lab: 'M9 4h6M10 4v5.5L5.2 18a1.4 1.4 0 0 0 1.2 2h11.2a1.4 1.4 0 0 0 1.2-2L14 9.5V4M7.5 15h9',
  cost: 'M5 20V11M10 20V5M15 20v-7M20 20V8',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z',
  help: 'M9.2 9.2a2.9 2.9 0 1 1 4 2.7c-.8.4-1.2.9-1.2 1.9M12 17v.01M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z',
  copy: 'M9 9h10v11H9zM15 9V4H5v11h4',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  export: 'M12 4v11M7.5 10.5L12 15l4.5-4.5M5 20h14',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  stop: 'M7 7h10v10H7z',
  resume: 'M8 5.5v13l10.5-6.5z',
  image: 'M4 5h16v14H4zM4 16l4.5-4.5 4 4 2.5-2.5 5 5M15.5 9.5v.01',
  camera: 'M4 8h3.5L9 5.5h6L16.5 8H20v11H4zM12 10a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4z',
  back: 'M14.5 6L8.5 12l6 6',
} as const;
export type IconName = keyof typeof paths;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={paths[name]} />
  </svg>
);
