// Dark or light, kept between visits.
import { useEffect, useState } from 'preact/hooks';

export type Theme = 'dark' | 'light';
export const currentTheme = () => document.documentElement.dataset.theme as Theme;

export function setTheme(theme: Theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem('heed.theme', theme);
  dispatchEvent(new Event('heed-theme'));
}

// Redraws the components that use colours of the theme.
export function useTheme(): Theme {
  const [theme, setState] = useState(currentTheme());
  useEffect(() => {
    const listener = () => setState(currentTheme());
    addEventListener('heed-theme', listener);
    return () => removeEventListener('heed-theme', listener);
  }, []);
  return theme;
}

export const cssColour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const seriesColour = (index: number) => `var(--series-${(index % 8) + 1})`;
