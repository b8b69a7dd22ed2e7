// An image by drop, paste, file or camera. It stays in this page: links do not carry it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './controls';

const largestSide = 1024; // pixels; larger images are scaled down before they are sent

async function readImage(file: Blob): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, largestSide / Math.max(bitmap.width, bitmap.height));
  if (scale === 1 && file.size < 2e6 && /png|jpeg|webp|bmp/.test(file.type))
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result as string);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
  return frame(bitmap, bitmap.width * scale, bitmap.height * scale);
}

function frame(source: CanvasImageSource, width: number, height: number): string {
  const canvas = Object.assign(document.createElement('canvas'), { width: Math.round(width), height: Math.round(height) });
  canvas.getContext('2d')!.drawImage(source, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL('image/png');
}

export function ImageInput({ image, onImage }: { image: string | null; onImage: (image: string) => void }) {
  const file = useRef<HTMLInputElement>(null),
    video = useRef<HTMLVideoElement>(null);
  const [over, setOver] = useState(false),
    [camera, setCamera] = useState<MediaStream | null>(null),
    [problem, setProblem] = useState('');
  const take = async (blob: Blob | null | undefined) => {
    if (!blob) return;
    try {
      onImage(await readImage(blob));
      setProblem('');
    } catch {
      setProblem('This file is not an image that the browser can read.');
    }
  };
  useEffect(() => {
    const paste = (event: ClipboardEvent) =>
      void take([...(event.clipboardData?.files ?? [])].find(each => each.type.startsWith('image/')));
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  });
  useEffect(() => {
    if (camera && video.current) video.current.srcObject = camera;
    return () => camera?.getTracks().forEach(track => track.stop());
  }, [camera]);
  const openCamera = async () => {
    try {
      setCamera(await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } }));
    } catch {
      setProblem('There is no camera, or the browser does not allow it here.');
    }
  };
  const shoot = () => {
    onImage(frame(video.current!, video.current!.videoWidth, video.current!.videoHeight));
    setCamera(null);
  };
  return (
    <div
      class={`drop ${over ? 'over' : ''}`}
      onDragOver={event => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={event => (event.preventDefault(), setOver(false), void take(event.dataTransfer?.files[0]))}
    >
      {camera ? (
        <video ref={video} autoplay playsInline muted aria-label="Camera" />
      ) : image ? (
        <img
          src={image}
          alt="The chosen image"
          onLoad={event => event.currentTarget.classList.toggle('tiny', event.currentTarget.naturalWidth < 112)}
        />
      ) : (
        <p>Drop an image here, or paste one.</p>
      )}
      <div class="row">
        <input
          ref={file}
          type="file"
          accept="image/*"
          hidden
          aria-label="Image file"
          onChange={event => void take(event.currentTarget.files?.[0])}
        />
        {camera ? (
          <Button kind="primary" icon="camera" onClick={shoot}>
            Take a picture
          </Button>
        ) : (
          <>
            <Button icon="image" onClick={() => file.current!.click()}>
              Choose a file
            </Button>
            <Button icon="camera" onClick={openCamera}>
              Camera
            </Button>
          </>
        )}
      </div>
      {problem && <p role="alert">{problem}</p>}
    </div>
  );
}
