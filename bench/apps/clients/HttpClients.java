// The checks of Java's own client, java.net.http, as it is by default: it prefers HTTP/2, and in clear asks for an upgrade to it.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;

public class HttpClients {
    static HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    static String base;

    static HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(10));
    }

    static void same(Object got, Object wanted, String what) {
        if (!got.equals(wanted)) throw new RuntimeException(what + " is " + got + ", not " + wanted);
    }

    static void step() throws Exception {
        same(client.send(to("/bytes/100000").build(), HttpResponse.BodyHandlers.ofString()).body().length(), 100000, "length");
        byte[] body = new byte[1 << 20];
        String answer = client.send(to("/upload").POST(HttpRequest.BodyPublishers.ofByteArray(body)).build(), HttpResponse.BodyHandlers.ofString()).body();
        same(answer.contains("\"length\":1048576"), true, "length in " + answer);
        HttpRequest.BodyPublisher pieces = HttpRequest.BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(body));
        answer = client.send(to("/upload").POST(pieces).build(), HttpResponse.BodyHandlers.ofString()).body();
        same(answer.contains("\"length\":1048576"), true, "length in " + answer);
        ArrayList<CompletableFuture<HttpResponse<String>>> all = new ArrayList<>();
        for (int i = 0; i < 20; i++) all.add(client.sendAsync(to("/bytes/" + i).build(), HttpResponse.BodyHandlers.ofString()));
        for (int i = 0; i < 20; i++) same(all.get(i).get().body().length(), i, "length");
    }

    public static void main(String[] args) {
        base = "http://" + args[1];
        long end = System.nanoTime() + (long) (Double.parseDouble(args[2]) * 1e9);
        int ok = 0;
        String why = "";
        try {
            do { step(); ok++; } while (System.nanoTime() < end);
        } catch (Exception e) {
            e.printStackTrace();
            why = e.toString().replaceAll("[\"\\\\\\s]+", " ");
        }
        System.out.printf("{\"ok\": %d, \"failed\": %d, \"why\": \"%s\", \"note\": \"%s\"}%n", ok, why.isEmpty() ? 0 : 1, why, why.isEmpty() ? ok + " times" : "");
        System.exit(0);
    }
}
